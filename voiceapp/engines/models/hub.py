"""Models of a hub by name: `hf:owner/repository:Q4_K_M`, as users of llama.cpp write it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from django.conf import settings

from voiceapp.catalogue.defaults import HUB_NAME
from voiceapp.errors import InvalidParameter
from voiceapp.outbound.addresses import Network
from voiceapp.outbound.client import FetchFailed, Outbound

PREFIX = "hf:"
USUAL = "Q4_K_M"
MAX_LIST_BYTES = 4_000_000
LIST_S = 20.0

_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")


@dataclass(frozen=True, slots=True)
class HubFile:
    url: str
    sha256: str
    """As the hub has it."""
    size: int
    """Bytes."""


async def find(name: str, allowed_networks: Sequence[Network] = ()) -> HubFile:
    """Find the file that a name means.

    Raises:
        InvalidParameter: if it is not such a name.
        FetchFailed: if the hub does not answer, or has no such file.
    """
    if (named := HUB_NAME.fullmatch(name)) is None:
        raise InvalidParameter(f"{name[:80]} is not a name such as hf:owner/repository:{USUAL}.")
    repository, wanted = named[1], named[2] or USUAL
    address = f"{settings.HF_ENDPOINT}/api/models/{repository}/tree/main?recursive=true"
    async with Outbound(allowed_networks=allowed_networks) as outbound:
        listed = _files(await outbound.read(address, max_bytes=MAX_LIST_BYTES, total_s=LIST_S))
    models = {path: about for path, about in listed.items() if path.endswith(".gguf")}
    found = [path for path in models if wanted.lower() in path.lower().rpartition("/")[2]]
    whole = [path for path in found if not _PART.search(path)]
    if not found:
        known = ", ".join(sorted(models)[:12]) or "no GGUF file"
        raise FetchFailed(f"{repository} has no {wanted}. It has {known}.")
    if not whole:
        raise FetchFailed(
            f"{wanted} of {repository} is divided into several files, which is not read. Take a smaller one."
        )
    path = min(whole, key=len)  # of Q4_K_M and IQ4_K_M-imat, the plain one
    size, sha256 = models[path]
    return HubFile(f"{settings.HF_ENDPOINT}/{repository}/resolve/main/{quote(path)}", sha256, size)


def _files(body: bytes) -> dict[str, tuple[int, str]]:
    """Size and checksum of the large files of a repository."""
    try:
        entries = [entry for entry in json.loads(body) if entry.get("type") == "file" and entry.get("lfs")]
        return {str(entry["path"]): (int(entry["lfs"]["size"]), str(entry["lfs"]["oid"]).lower()) for entry in entries}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, OverflowError):
        raise FetchFailed("The hub's list of files cannot be read.") from None
