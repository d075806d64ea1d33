"""Operations on who is calling: temporary tokens."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest
from ninja import Query, Router

from voiceapp.accounts import temporary_keys
from voiceapp.accounts.auth import Caller, mint_temporary_key
from voiceapp.http.schemas import Schema

router = Router(tags=["Temporary tokens"])

Seconds = Annotated[
    int, Query(ge=1, le=temporary_keys.LONGEST_S, description="For how many seconds the token is good.")
]


class TemporaryToken(Schema):
    """A bearer key for a little while."""

    token: str
    """`st-…`: use it in the place of an API key."""
    expires_at: int
    """Time of expiry in Unix seconds."""


@router.post("/tokens", summary="Make a temporary token", response=TemporaryToken)
async def make_token(request: HttpRequest, expire_in_seconds: Seconds = temporary_keys.USUAL_S) -> TemporaryToken:
    """A token with the rights of the API key that asks, for a place where the key itself must not go.

    It ends by itself, and at once when its key is revoked. It cannot make further tokens: it would never end.
    """
    caller: Caller = request.auth
    token, expires_at = await mint_temporary_key(caller, expire_in_seconds)
    return TemporaryToken(token=token, expires_at=expires_at)
