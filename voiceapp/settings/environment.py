"""Reading the environment: every variable has a type, and a value that cannot be read is named."""

from __future__ import annotations

import fcntl
import ipaddress
import json
import os
import re
import secrets
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent.parent


class _Env(environ.Env):
    """Names the variable that cannot be read."""

    def get_value(self, var: str, cast: Any = None, *args: Any, **options: Any) -> Any:
        given = self.ENVIRON.get(var)
        if cast is bool and given is not None and given.lower() not in {*self.BOOLEAN_TRUE_STRINGS, *_FALSE}:
            raise ImproperlyConfigured(f"{var} is {given!r}: write 1 or 0.")
        try:
            return super().get_value(var, cast, *args, **options)
        except ValueError as error:
            why = "write NAME=VALUE, with commas between" if cast is dict else str(error)
            raise ImproperlyConfigured(f"{var} is {given!r}, which cannot be read: {why}.") from None


_FALSE = ("false", "off", "n", "no", "0", "")

env = _Env()
environ.Env.read_env(BASE_DIR / ".env")

MAX_STEP_S = 366 * 86_400


def made_folder(folder: Path) -> Path:
    """VAR_DIR, made unless it exists.

    Raises:
        ImproperlyConfigured: if it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ImproperlyConfigured(f"VAR_DIR is {str(folder)!r}, which cannot be made: {error.strerror}.") from None
    return folder


def development_key(folder: Path) -> str:
    """The signing key of a development instance: random, made at its first start, readable by its owner alone.

    Raises:
        ImproperlyConfigured: if the file cannot be read or made.
    """
    file = made_folder(folder) / "development-key"
    try:
        with open(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+") as opened:
            fcntl.flock(opened, fcntl.LOCK_EX)  # of several processes that start together, one makes it
            if not (key := opened.read()):
                key = secrets.token_urlsafe(50)
                opened.write(key)
            return key
    except OSError as error:
        raise ImproperlyConfigured(f"{file} cannot be written: {error.strerror}. Set VAR_DIR or SECRET_KEY.") from None


DATABASES = ("django.db.backends.sqlite3", "django.db.backends.postgresql")


def database(url: str) -> dict[str, Any]:
    """The database that DATABASE_URL names; what is wrong with one is told without the password in it."""
    config: dict[str, Any] = {}
    with suppress(ImproperlyConfigured, KeyError, ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the library would print the address, with its password
        config = environ.Env.db_url_config(url)
    if config.get("ENGINE") not in DATABASES:
        raise ImproperlyConfigured(
            "DATABASE_URL names no database that is used here: "
            "write postgres://user:password@host:5432/name, or sqlite:////path/to/file."
        )
    return config


def stripped(given: list[str]) -> list[str]:
    """The entries of a list without the spaces around them."""
    return [text for entry in given if (text := entry.strip())]


def hosts(given: list[str]) -> list[str]:
    """Names of hosts, or `*`."""
    for host in (found := stripped(given)):
        if "/" in host:
            raise ImproperlyConfigured(f"ALLOWED_HOSTS holds names of hosts such as voice.example.org, not {host!r}.")
    return found


def network(text: str) -> str:
    """A network, without the spaces around it."""
    try:
        return str(ipaddress.ip_network(text.strip()))
    except ValueError as error:
        raise ImproperlyConfigured(
            "FETCH_ALLOWED_NETWORKS, MODEL_ALLOWED_NETWORKS, PROXY_USER_NETWORKS and WEBHOOK_ALLOWED_NETWORKS hold "
            f"networks such as 192.168.7.0/24: {error}."
        ) from None


def regions(given: dict[str, str]) -> dict[str, str]:
    """Region by network, the networks checked."""
    try:
        return {str(ipaddress.ip_network(network.strip())): region.strip() for network, region in given.items()}
    except ValueError as error:
        raise ImproperlyConfigured(f"AOQ_REGIONS is made of entries such as 198.51.100.0/24=eu: {error}.") from None


def ice_urls(variable: str, kind: str, urls: list[str]) -> list[str]:
    """Addresses of STUN servers or relays (RFC 7064, RFC 7065), without the spaces around them."""
    transport = r"(?:\?transport=(?:udp|tcp))?" if kind == "turn" else ""
    urls = [url.strip() for url in urls]
    for url in urls:
        found = re.fullmatch(rf"{kind}s?:[^\s:/?#@\[\]]+(?::([0-9]+))?{transport}", url)
        if not found or not 0 < int(found[1] or 3478) < 65536:
            raise ImproperlyConfigured(f"{variable} holds URLs such as {kind}:{kind}.example.org:3478, not {url!r}.")
    return urls


def step_s(text: str) -> float:
    """A step of a schedule, in seconds."""
    try:
        step_s = float(text)
    except ValueError:
        step_s = -1.0
    if not 0 <= step_s <= MAX_STEP_S:
        raise ImproperlyConfigured(f"WEBHOOK_RETRY_SCHEDULE holds seconds, such as 10,30,60: not {text.strip()!r}.")
    return step_s


def prices(text: str) -> dict[str, dict[str, int]]:
    """Prices by model or family, and by unit; `voiceapp.accounts.checks` looks at names and numbers."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(prices, dict) for prices in found.values()):
        raise ImproperlyConfigured('LEDGER_PRICES is JSON such as {"tts": {"characters": 15000}}.')
    return found
