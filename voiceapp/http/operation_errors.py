"""Error codes of each operation. Every operation may also fail with those of `ANYWHERE`."""

from __future__ import annotations

import re
from typing import Any

ANYWHERE = ("RequestTimeOut", "Throttling.Concurrency", "InternalError", "ServiceUnavailable")
MODEL = ("ModelNotFound", "Throttling.RateQuota", "Throttling.AllocationQuota", "ModelUnavailable", "ResponseTimeout")
CHAT = ("InvalidParameter.DataFetch", "DataInspectionFailed")

OWN: dict[str, tuple[str, ...]] = {
    r"POST .*/(chat/completions|responses|(text|multimodal)-generation/generation)$": (*MODEL, *CHAT),
    r"POST .*/((text-)?embeddings?|(text-)?reranks?|audio/\w+)$": MODEL,
    r"POST /api/v1/services/.*/(transcription|[\w-]*synthesis|image-generation/\w+)$": MODEL[:3],
    r"POST .*/(webrtc/(realtime|inference)|v1/realtime|realtime/calls)$": ("ModelNotFound", "ModelUnavailable"),
    r"POST .*/realtime/client_secrets$": ("ModelNotFound", "Throttling.RateQuota"),
    r"POST .*/tokens$|GET .*/tasks$": ("Throttling.RateQuota",),
    r"GET .*/models/": ("ModelNotFound",),
    r"POST .*/uploads": ("Throttling.AllocationQuota",),
    r"POST .*/uploads/direct$": ("InvalidApiKey",),
    r"POST .*/cancel$": ("UnsupportedOperation",),
    r"POST .*/(webhook_endpoints|replay|test)$": ("Conflict",),
    r"POST .*/reset_secret$": ("11800005",),
    r"POST .*/test$": ("11800015", "SigningSecretLost"),
}
"""By method and path: codes beside those that follow from the parameters of the operation."""


def error_codes(method: str, path: str, operation: dict[str, Any]) -> list[str]:
    """Codes of the operation, in the order of their statuses."""
    found = ["InvalidParameter"] if operation.get("parameters") or operation.get("requestBody") else []
    found += ["InvalidApiKey", "AccessDenied"] if operation.get("security") else []
    found += ["NotFound"] if "{" in path and not path.endswith("{model}") else []
    for pattern, codes in OWN.items():
        if re.search(pattern, f"{method.upper()} {path}"):
            found += codes
    return list(dict.fromkeys(found))
