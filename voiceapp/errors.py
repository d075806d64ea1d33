"""The one tree of errors, with the HTTP status of each class and the module of those that are defined outside this one.

    VoiceError                      500
      RequestRefused                400   the caller asked for something that the server will not do
        InvalidParameter            400
          AddressNotAllowed         400   outbound/addresses.py
        InvalidApiKey               401
        AccessDenied                403
          SignInRequired            403   accounts/page.py
        NotFound                    404
          ModelNotFound             404
          SecretNotReset            404   webhooks/api.py
        PayloadTooLarge             413
        MediaTypeRefused            415   http/error_responses.py
        Throttled                   429
        ServiceUnavailable          503
        NotPending                  400   tasks/store.py
        Conflict                    409   webhooks/store.py
        SecretLost                  409   webhooks/secrets.py
        ReceiverFailed              502   webhooks/api.py
      ProtocolError                 500   an illegal step in a session
        LocalProtocolError          500   our own code took it
        RemoteProtocolError         500   the peer did; it is told by an error event
          EventError                500   protocol/wire/reading.py
            RunTaskError            500   protocol/run_task.py
          FloodError                500   the session ends
          ClientSilent              500   the session ends
      EngineError                   500   a model could not do its work; `retryable` says whether to ask again
        EngineUnavailable           503
          WeightsMissing            503   engines/models/weights.py
          LaneFull                  429   engines/models/lanes.py
          Busy                      503   engines/openai/client.py
          Unreachable               503   engines/openai/client.py
          CircuitOpen               503   engines/upstream/http/client.py
          VoiceUnusable             503   engines/voices/neural.py
          TextUnreadable            503   engines/voices/neural.py
          ServiceFull               429   engines/upstream/realtime/connection.py
        EngineTimeout               504
        EngineRefused               400
          ModelNotThere             404   engines/upstream/realtime/connection.py
          DataInspectionFailed      400   content inspection lets something not pass
      FetchFailed                   400   outbound/client.py
        TlsInvalid                  400   outbound/client.py
        ResponseTooLarge            400   outbound/client.py
        FetchTimeout                400   outbound/client.py
      DatabaseUnavailable           503   database/thread.py
      DiskFull                      503   disk.py

Raise where the fact is known; each door translates once. `message` is one sentence for the person who called, without
secrets and without internals. An exception outside this tree never leaves the room that raises it.
"""

from __future__ import annotations


class VoiceError(Exception):
    """Anything this program raises on purpose."""

    code: str = "InternalError"
    http_status: int = 500
    retry_after_s: int = 1
    """Goes out as Retry-After with the statuses 429 and 503."""
    param: str | None = None
    """Dotted path of the offending field, for example `session.turn_detection.threshold`; None when there is none."""

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


class ServiceUnavailable(RequestRefused):
    """The server takes nothing new for the moment."""

    code = "ServiceUnavailable"
    http_status = 503


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


class ClientSilent(RemoteProtocolError):
    """The peer sends nothing, while nothing is under way; the session ends."""

    def __init__(self, silence_s: float) -> None:
        message = f"No input came for {silence_s:g} seconds: request timeout after {silence_s:g} seconds."
        super().__init__(message, code="RequestTimeOut")


class EngineError(VoiceError):
    retryable: bool = False

    def __init__(self, message: str, *, remedy: str = "") -> None:
        """`remedy` is what the operator can do; it may name settings, and callers never read it."""
        super().__init__(message)
        self.remedy = remedy
        if remedy:
            self.add_note(remedy)  # tracebacks are for operators, too

    @property
    def for_operators(self) -> str:
        """Cause and remedy, for the log, `/readyz` and `doctor`."""
        return f"{self.message} {self.remedy}".strip()


class EngineUnavailable(EngineError):
    """The engine cannot serve now: weights missing, lane full, other server unreachable."""

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
    status_elsewhere = 0
    """Status that the other server answered; 0 if none was asked."""
    parameter_elsewhere = ""
    """Parameter that the other server named as its cause."""


class DataInspectionFailed(EngineRefused):
    """Content inspection does not let a text pass."""

    code = "DataInspectionFailed"
