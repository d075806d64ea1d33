"""Operations on who is calling: temporary tokens."""

from __future__ import annotations

import time
from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router

from voiceapp.accounts import tokens
from voiceapp.accounts.auth import Caller, key_digest_of
from voiceapp.accounts.rates import rates
from voiceapp.errors import AccessDenied
from voiceapp.schemas import Schema

router = Router(tags=["Temporary tokens"])

Seconds = Annotated[int, Query(ge=1, le=tokens.LONGEST_S, description="For how many seconds the token is good.")]


class TemporaryToken(Schema):
    """A bearer key for a little while."""

    token: str
    """`st-…`: use it in the place of an API key."""
    expires_at: int
    """When it ends, in Unix seconds."""


@router.post("/tokens", summary="Make a temporary token", response=TemporaryToken)
async def make_token(request: HttpRequest, expire_in_seconds: Seconds = tokens.USUAL_S) -> TemporaryToken:
    """A token with the rights of the API key that asks, for a place where the key itself must not go.

    It ends by itself, and at once when its key is revoked. It cannot make further tokens: it would never end.
    """
    caller: Caller = request.auth
    if caller.key_id is None or caller.is_temporary:
        raise AccessDenied("A temporary token is made with an API key, not with another token.")
    await rates().admit(caller.account_id, "tokens")
    expires_at = int(time.time()) + expire_in_seconds
    return TemporaryToken(token=tokens.mint(await key_digest_of(caller.key_id), expires_at), expires_at=expires_at)
