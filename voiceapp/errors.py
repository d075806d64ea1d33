"""The one tree of errors.

    VoiceError
      RequestRefused           the caller asked for something we will not do
        InvalidParameter 400   InvalidApiKey 401   AccessDenied 403   Throttled 429
        NotFound 404           ModelNotFound
        PayloadTooLarge 413
      ProtocolError            an illegal step in a conversation
        LocalProtocolError     we asked for it (a bug of ours)
        RemoteProtocolError    the peer did
          FloodError           … so fast that the conversation ends
      EngineError              a model could not do its work; `retryable` says whether asking again may help
        EngineUnavailable 503  EngineTimeout 504  EngineRefused 400

Raise where the fact is known; each door translates once. `message` is one sentence for the person who called, without
secrets and without internals.
"""

from __future__ import annotations


class VoiceError(Exception):
    """Anything this program raises on purpose."""

    code: str = "InternalError"
    http_status: int = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class RequestRefused(VoiceError):
    code = "InvalidParameter"
    http_status = 400


class InvalidParameter(RequestRefused):
    """A value is missing, of the wrong type or out of range."""

    def __init__(self, message: str, *, param: str | None = None) -> None:
        super().__init__(message)
        self.param = param
        """Dotted path of the offending field, for example `session.turn_detection.threshold`."""


class InvalidApiKey(RequestRefused):
    code = "InvalidApiKey"
    http_status = 401

    def __init__(self, message: str = "Invalid API-key provided.") -> None:
        super().__init__(message)


class AccessDenied(RequestRefused):
    code = "AccessDenied"
    http_status = 403


class NotFound(RequestRefused):
    code = "NotFound"
    http_status = 404


class ModelNotFound(NotFound):
    code = "ModelNotFound"


class PayloadTooLarge(RequestRefused):
    code = "InvalidParameter"
    http_status = 413


class Throttled(RequestRefused):
    """A limit was reached; `retry_after_s` goes out as Retry-After."""

    code = "Throttling.RateQuota"
    http_status = 429

    def __init__(
        self,
        message: str = "Requests rate limit exceeded, please try again later.",
        *,
        code: str | None = None,
        retry_after_s: int = 1,
    ) -> None:
        super().__init__(message)
        self.code = code or self.code
        self.retry_after_s = retry_after_s


class ProtocolError(VoiceError):
    code = "invalid_request_error"


class LocalProtocolError(ProtocolError):
    """Our own code took a step the tables do not allow."""


class RemoteProtocolError(ProtocolError):
    """The peer took a step the tables do not allow."""

    def __init__(self, message: str, *, code: str = "invalid_event", param: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


class FloodError(RemoteProtocolError):
    """The peer sends more than a conversation can hold, or reads too slowly; the session ends."""


class EngineError(VoiceError):
    retryable: bool = False


class EngineUnavailable(EngineError):
    """The engine cannot serve now: weights missing, lane full, server elsewhere unreachable."""

    code = "ModelUnavailable"
    http_status = 503
    retryable = True


class EngineTimeout(EngineError):
    code = "ResponseTimeout"
    http_status = 504
    retryable = True


class EngineRefused(EngineError):
    """The engine understood and declines: unsupported language, bad parameters, content refused."""

    code = "InvalidParameter"
    http_status = 400
