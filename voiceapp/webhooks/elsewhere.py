"""Endpoints that a service elsewhere has: one account of this server may look at them and delete them there."""

from __future__ import annotations

from typing import Any, Protocol

from django.conf import settings
from pydantic import ValidationError

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.models import Account
from voiceapp.engines.providers import endpoints_elsewhere
from voiceapp.errors import EngineUnavailable
from voiceapp.webhooks.models import WebhookEndpoint
from voiceapp.webhooks.schemas import EndpointRecord


class RemoteEndpoints(Protocol):
    """The endpoints of a service; both methods raise NotFound, or an EngineError."""

    async def retrieve(self, endpoint_id: str) -> dict[str, Any]:
        """The record of an endpoint, as the service sends it."""

    async def delete(self, endpoint_id: str) -> None:
        """Delete an endpoint."""


async def endpoints_for(caller: Caller, endpoint_id: str) -> RemoteEndpoints | None:
    """Where an endpoint may be that the caller does not have here; None: nowhere else.

    The service elsewhere knows this server's key only, so its endpoints are those of the account that the operator
    names. What another workspace has here is not asked for there.
    """
    endpoints = endpoints_elsewhere()
    if endpoints is None:
        return None
    owner = Account.objects.filter(pk=caller.account_id, name=settings.UPSTREAM_WEBHOOK_ACCOUNT)
    if not await owner.aexists() or await WebhookEndpoint.objects.filter(public_id=endpoint_id).aexists():
        return None
    return endpoints


async def retrieved(endpoints: RemoteEndpoints, endpoint_id: str) -> dict[str, object]:
    """The record of an endpoint there, in our form. Raises what `RemoteEndpoints.retrieve` raises."""
    found = await endpoints.retrieve(endpoint_id)
    try:
        record = EndpointRecord.model_validate({name: found.get(name) for name in EndpointRecord.model_fields})
    except ValidationError as invalid:
        raise EngineUnavailable("The service elsewhere sent something that is not a webhook endpoint.") from invalid
    return record.model_dump()
