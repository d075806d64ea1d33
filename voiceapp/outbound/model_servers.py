"""Model servers that operators name in the admin: public ones, those in networks that the environment allows, and those
at their usual ports on this machine."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any

from django.conf import settings

from voiceapp.errors import InvalidParameter
from voiceapp.outbound.addresses import allows, check_url

WELL_KNOWN = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp or LocalAI", 8000: "vLLM"}
"""Usual ports of model servers."""


def check_model_server(address: str) -> None:
    """Check an address as far as it can be read; what protects is `guarded_socket`, at the time of the call.

    Raises:
        InvalidParameter: if it is not one that may be tried.
    """
    parts = check_url(address)
    if "?" in address or "#" in address:
        raise InvalidParameter("A model server's address ends with its path, such as /v1, without ? and #.")
    try:
        host = ipaddress.ip_address("127.0.0.1" if parts.hostname == "localhost" else parts.hostname or "")
    except ValueError:
        return
    if not _is_allowed(str(host), parts.port or {"http": 80, "https": 443}[parts.scheme], parts.path):
        raise InvalidParameter(
            f"{host} is not a public address, nor /v1 at a model server's usual port on this machine. "
            "MODEL_ALLOWED_NETWORKS names networks that are allowed."
        )


def guarded_socket(info: Any) -> socket.socket:
    """Return a socket for a connection to a model server; a factory for aiohttp's connector.

    Raises:
        PermissionError: if the address is not allowed.
    """
    family, kind, protocol, _, address = info
    if not _is_allowed(str(address[0]), int(address[1])):
        raise PermissionError(f"{address[0]} is not allowed by MODEL_ALLOWED_NETWORKS")
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    return made


def _is_allowed(host: str, port: int, path: str = "/v1") -> bool:
    address = ipaddress.ip_address(host.partition("%")[0])
    is_usual = address.is_loopback and port in WELL_KNOWN and port != settings.PORT and path.strip("/") == "v1"
    return is_usual or allows(host, [ipaddress.ip_network(network) for network in settings.MODEL_ALLOWED_NETWORKS])
