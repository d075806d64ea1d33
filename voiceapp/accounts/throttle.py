"""Slows down the guessing of passwords: 5 failures within 15 minutes for a name at an address, then a pause.

Counts are kept in Django's caches: in this process, and beside it in Redis where there is one, for all processes.
While Redis is gone, each process counts alone. An attempt is counted before the password is looked at and forgiven when
it was right, so that a hundred attempts at once get no further than a hundred in a row.
"""

from __future__ import annotations

import hashlib
import unicodedata
from contextlib import suppress

from django.contrib.auth.models import User
from django.core.cache import caches
from django.core.cache.backends.base import BaseCache

from voiceapp.accounts.addresses import neighbourhood
from voiceapp.errors import Throttled

try:
    from redis.exceptions import RedisError
except ImportError:  # an optional requirement
    _UNAVAILABLE: tuple[type[Exception], ...] = ()
else:
    _UNAVAILABLE = (RedisError,)

WINDOW_S = 15 * 60
FAILURES_PER_NAME = 5
"""Failures of one name from one address."""
FAILURES_PER_ADDRESS = 50
"""Failures of all names from one address: an attacker who tries one password with many names."""


class LoginAttempt:
    def __init__(self, address: str, name: str) -> None:
        caller = neighbourhood(address)
        folded = unicodedata.normalize("NFKC", name).casefold()
        self._limits = {
            _cache_key("name", caller, folded): FAILURES_PER_NAME,
            _cache_key("address", caller): FAILURES_PER_ADDRESS,
        }

    def begin(self) -> None:
        """Count the attempt.

        Raises:
            Throttled: if there were too many failures; the password is not to be looked at then.
        """
        if any(_count(key) > limit for key, limit in self._limits.items()):
            raise Throttled(
                "Too many failed attempts to sign in. Wait 15 minutes and try again.", retry_after_s=WINDOW_S
            )

    def succeeded(self) -> None:
        """Forgive this name's failures, and this attempt to the address."""
        by_name, *by_address = self._limits
        for cache in caches.all():
            with suppress(*_UNAVAILABLE, ValueError):  # the latter where the window ended meanwhile
                cache.delete(by_name)
                for key in by_address:
                    cache.decr(key)


class CodeAttempt(LoginAttempt):
    """A guess at a second factor. It counts from any address: those who guess know the password."""

    def __init__(self, user: User) -> None:
        self._limits = {_cache_key("code", str(user.pk)): FAILURES_PER_NAME}


def _cache_key(kind: str, *parts: str) -> str:
    """Names are hashed: any input, a password by mistake included, makes a harmless key."""
    digest = hashlib.sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return f"login-{kind}-{digest}"


def _count(key: str) -> int:
    """The number of attempts within the window that the first of them opened, this one included."""
    count = 0
    for cache in caches.all():
        with suppress(*_UNAVAILABLE):
            count = max(count, _count_in(cache, key))
    return count


def _count_in(cache: BaseCache, key: str) -> int:
    cache.add(key, 0, timeout=WINDOW_S)
    try:
        return int(cache.incr(key))
    except ValueError:  # the window ended between the two lines
        cache.set(key, 1, timeout=WINDOW_S)
        return 1
