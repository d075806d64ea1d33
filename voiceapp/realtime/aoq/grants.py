"""Grants: the permission to connect to a relay once. Issued by a web process, used up by a relay process."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any
from urllib.parse import parse_qs

from django.contrib.auth import get_user_model
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import salted_hmac

from voiceapp.accounts.auth import Caller, caller_from_user, caller_of_key, labelled_guest
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import InvalidApiKey
from voiceapp.realtime.admission import Admitted
from voiceapp.realtime.aoq import tokens
from voiceapp.realtime.aoq.models import AoqGrant, AoqRelay
from voiceapp.realtime.records.recorder import Beginning

MAX_UNUSED = 1000
"""Unused grants of one account, or of the guests at one address; of more, the oldest are deleted."""
KEPT = timedelta(hours=1)
"""After its expiry, so that a second use is told apart from a grant that never was."""


class Rejection(IntEnum):
    """Reasons of a relay to reject a connection: codes for the library (browsers see them plus 64)."""

    NO_TOKEN = 1000
    BAD_TOKEN = 1001
    EXPIRED = 1002
    OTHER_SESSION = 1003
    USED = 1004
    BUSY = 1005
    """The relay is full or draining, or the server is not ready: another one may do."""
    NOT_ADMITTED = 1006
    """The caller's key, login, budget or model was taken away since."""


class GrantRejected(Exception):
    """A connection comes with no grant that counts."""

    def __init__(self, rejection: Rejection) -> None:
        super().__init__(rejection.name)
        self.rejection = rejection


@dataclass(frozen=True, slots=True)
class Issued:
    """A grant and the relays that it is good for."""

    sid: str
    token: str
    routes: list[AoqRelay]
    expires_in_s: int
    """Seconds within which the grant has to be used."""
    workspace_id: int

    def to_wire(self) -> dict[str, Any]:
        """The body of the response (interface specification, "Realtime session grant")."""
        return {
            "sid": self.sid,
            "aoqTokenForClient": self.token,
            "clientRelayEndpoints": [
                {"endpoint": relay.endpoint, "port": relay.port, "route_index": index}
                for index, relay in enumerate(self.routes)
            ],
            "clientRelayCertFingerprint": self.routes[0].fingerprint,
            "sidExpiresInSecs": self.expires_in_s,
            "extraInfo": {"workspaceIdHash": workspace_hash(self.workspace_id)},
        }


def workspace_hash(workspace_id: int) -> str:
    """16 hexadecimal digits that tell workspaces apart and do not name them."""
    digest = salted_hmac("voiceapp.realtime.aoq.workspace", str(workspace_id), algorithm="sha256")
    return str(digest.hexdigest()[:16])


async def issue(admitted: Admitted, routes: list[AoqRelay], *, session_key: str, runs_tasks: bool = False) -> Issued:
    """A fresh grant for a session that may begin; it holds no seat until a client connects with it."""
    begun, expires_in_s = admitted.beginning, int(admitted.seat.lifetime_s)
    caller = begun.caller
    now = timezone.now()
    expires_at = now + timedelta(seconds=expires_in_s)
    sid = secrets.token_hex(16)
    await AoqGrant.objects.acreate(
        sid=sid,
        account_id=caller.account_id,
        workspace_id=caller.workspace_id,
        api_key_id=caller.key_id,
        user_id=caller.user_id,
        guest=caller.label if caller.is_guest else "",
        temporary_key_expires_at=caller.expires_at if caller.is_temporary else None,
        session_key=session_key,
        model=begun.model,
        runs_tasks=runs_tasks,
        time_zone=admitted.call.time_zone,
        languages=",".join(admitted.call.languages),
        client_address=begun.client_address,
        issued_at=now,
        expires_at=expires_at,
    )
    await _bound(begun)
    token = tokens.sign(sid, issued_at=now.timestamp(), expires_at=expires_at.timestamp())
    return Issued(sid, token, routes, expires_in_s, caller.workspace_id)


async def _bound(begun: Beginning) -> None:
    unused = AoqGrant.objects.filter(account_id=begun.caller.account_id, used_at__isnull=True)
    if begun.caller.is_guest:  # strangers to each other
        unused = unused.filter(client_address=begun.client_address)
    issued = unused.order_by("-issued_at").values_list("issued_at", flat=True)
    async for limit in issued[MAX_UNUSED : MAX_UNUSED + 1]:
        await unused.filter(issued_at__lte=limit).adelete()


async def find(path: str, query: str, now: datetime) -> AoqGrant:
    """The grant that a connection comes with, by its path and its query; nothing is used up yet.

    Raises:
        GrantRejected: there is no token, it is not ours, has expired, or is for another session or used.
    """
    text = parse_qs(query).get("jwt", [""])[0]
    if not text:
        raise GrantRejected(Rejection.NO_TOKEN)
    try:
        token = tokens.verify(text)
    except tokens.TokenInvalid:
        raise GrantRejected(Rejection.BAD_TOKEN) from None
    if token.expires_at <= now.timestamp():
        raise GrantRejected(Rejection.EXPIRED)
    if path.strip("/") != token.root or token.root != tokens.path_of(token.sid):
        raise GrantRejected(Rejection.OTHER_SESSION)
    grant: AoqGrant | None = await AoqGrant.objects.filter(pk=token.sid).afirst()
    if grant is None:  # one of more than an account may leave unused
        raise GrantRejected(Rejection.EXPIRED)
    if grant.used_at is not None:
        raise GrantRejected(Rejection.USED)
    return grant


async def use(grant: AoqGrant, now: datetime) -> None:
    """Use the grant up: of any number of attempts in all processes, one succeeds.

    Raises:
        GrantRejected: it was used already, or has expired.
    """
    unused = AoqGrant.objects.filter(pk=grant.pk, used_at__isnull=True, expires_at__gt=now)
    if not await unused.aupdate(used_at=now):
        raise GrantRejected(Rejection.USED)


async def caller_of(grant: AoqGrant) -> Caller:
    """Return the caller of a grant, with the rights that they have now.

    Raises:
        InvalidApiKey: the key was revoked or has expired, a temporary one included.
        AccessDenied: the person, or the account of guests, may not talk any more.
    """
    if grant.guest:
        return await labelled_guest(grant.guest)
    if grant.user_id is not None:
        user = await get_user_model().objects.aget(pk=grant.user_id)
        return await caller_from_user(user)
    caller = await run_in_db_thread(caller_of_key, grant.api_key_id)
    if (expires_at := grant.temporary_key_expires_at) is None:
        return caller
    if expires_at <= timezone.now():
        raise InvalidApiKey
    return replace(caller, is_temporary=True, expires_at=expires_at)


def delete_past_grants(now: datetime) -> int:
    past = Q(expires_at__lt=now.astimezone(UTC) - KEPT)
    return int(AoqGrant.objects.filter(past).delete()[0])
