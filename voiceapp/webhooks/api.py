"""The operations on webhook endpoints, at two roots: `agentsvc`, which the interface specification names, and
`agentstudio`, which client libraries call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, timedelta
from typing import Annotated, Any

from django.http import HttpRequest
from django.utils import timezone
from ninja import Body, Path, Query, Router

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.rates import rates
from voiceapp.database.thread import run_in_db_thread
from voiceapp.errors import NotFound, RequestRefused
from voiceapp.http.schemas import CleanStr
from voiceapp.webhooks import schemas, store
from voiceapp.webhooks.delivery import TOTAL_S
from voiceapp.webhooks.models import WebhookEndpoint
from voiceapp.webhooks.receivers import check_address
from voiceapp.webhooks.sample_delivery import try_once
from voiceapp.webhooks.schemas import endpoint_record, logged_event

ROOTS = ("agentsvc", "agentstudio")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
"""Between two looks at whether an endpoint that was closed is still called: most calls are over at once."""

EndpointId = Annotated[CleanStr, Path(max_length=100, description="Of the endpoint, `wep_…`.")]
EventId = Annotated[CleanStr, Path(max_length=100, description="Of the event, `whe_…`.")]


class SecretNotReset(NotFound):
    """The endpoint whose secret is to be reset does not exist."""

    code = "11800005"


class ReceiverFailed(RequestRefused):
    """A test delivery did not arrive."""

    code = "11800015"
    http_status = 502


async def create_endpoint(request: HttpRequest, body: schemas.NewEndpoint) -> Any:
    """Register an address to which events are posted. The response holds the signing secret, this once."""
    caller = await _admit(request)
    store.check_kinds(body.events)
    await check_address(body.url)
    endpoint, secret = await run_in_db_thread(
        store.create, caller.workspace_id, url=body.url, events=body.events, description=body.description or ""
    )
    return {**_reply(request, endpoint), "signing_secret": secret}


async def list_endpoints(request: HttpRequest) -> Any:
    """All endpoints of the workspace that the key belongs to, newest first."""
    caller = await _admit(request)
    rows: list[WebhookEndpoint] = await run_in_db_thread(lambda: list(store.listed(caller.workspace_id)))
    return {"data": [endpoint_record(row) for row in rows], "request_id": request.request_id}


async def retrieve_endpoint(request: HttpRequest, endpoint_id: EndpointId) -> Any:
    """One endpoint: its kinds of events, whether it is active, and how its deliveries went."""
    return _reply(request, await _endpoint(request, endpoint_id))


async def update_endpoint(request: HttpRequest, endpoint_id: EndpointId, body: schemas.EndpointChanges) -> Any:
    """Change the address, the kinds of events or the description. What is absent stays as it is."""
    endpoint = await _endpoint(request, endpoint_id)
    changes = {name: getattr(body, name) for name in body.model_fields_set}
    changes = {name: value for name, value in changes.items() if value is not None or name == "description"}
    if "events" in changes:
        store.check_kinds(changes["events"])
    if "description" in changes:
        changes["description"] = changes["description"] or ""
    if "url" in changes:
        await check_address(changes["url"])
    return _reply(request, await run_in_db_thread(store.update, endpoint, changes))


async def delete_endpoint(request: HttpRequest, endpoint_id: EndpointId) -> Any:
    """Delete an endpoint. Deliveries in progress are waited for: after the response, no call begins."""
    endpoint = await _endpoint(request, endpoint_id)
    await run_in_db_thread(store.delete, endpoint)
    await _until_quiet(endpoint)
    return {"request_id": request.request_id}


async def enable_endpoint(request: HttpRequest, endpoint_id: EndpointId) -> Any:
    """Deliver events that happen from now on; those that happened meanwhile are not sent."""
    return _reply(request, await run_in_db_thread(store.enable, await _endpoint(request, endpoint_id)))


async def disable_endpoint(request: HttpRequest, endpoint_id: EndpointId) -> Any:
    """Stop deliveries until the endpoint is enabled again; those that wait are canceled."""
    endpoint = await run_in_db_thread(store.disable, await _endpoint(request, endpoint_id))
    await _until_quiet(endpoint)
    return _reply(request, endpoint)


async def reset_secret(
    request: HttpRequest,
    endpoint_id: EndpointId,
    body: Annotated[schemas.SecretChange | None, Body()] = None,
) -> Any:
    """Make a new signing secret. It signs from the response on; the old one may go on beside it for a day."""
    try:
        endpoint = await _endpoint(request, endpoint_id)
    except NotFound as unknown:
        raise SecretNotReset(unknown.message) from None
    keep_old = body is not None and body.keep_old_secret_active_for_24_hours
    endpoint, secret = await run_in_db_thread(store.reset_secret, endpoint, keep_old=keep_old)
    return {**_reply(request, endpoint), "signing_secret": secret}


async def test_endpoint(request: HttpRequest, endpoint_id: EndpointId) -> Any:
    """Send `webhook.test` now, once. Succeeds only when the receiver accepts it; the log keeps it."""
    endpoint = await _endpoint(request, endpoint_id)
    if not endpoint.is_called:
        raise store.Conflict("The endpoint is disabled; enable it first.")
    sample = await try_once(endpoint)
    await run_in_db_thread(sample.keep)
    if not sample.is_good:
        raise ReceiverFailed(sample.report)
    event = schemas.EventRecord.model_validate_json(sample.body)
    return {
        **event.model_dump(exclude_none=True),
        "status_code": sample.attempted.outcome.status,
        "duration_ms": sample.attempted.duration_ms,
        "answer_start": sample.attempted.answer_start,
        "request_id": request.request_id,
    }


async def list_events(request: HttpRequest, endpoint_id: EndpointId, query: Query[schemas.LogQuery]) -> Any:
    """Events that were sent to the endpoint in the last 7 days, newest first; also after it was deleted."""
    endpoint = await _endpoint(request, endpoint_id, or_deleted=True)
    rows = await run_in_db_thread(
        store.log,
        endpoint,
        status=query.status,
        kind=query.type,
        before=int(query.page) if query.page else None,
        limit=query.limit + 1,
    )
    shown = rows[: query.limit]
    return {
        "data": [logged_event(row, endpoint) for row in shown],
        "next_page": str(shown[-1].pk) if len(rows) > query.limit else None,
        "request_id": request.request_id,
    }


async def retrieve_event(request: HttpRequest, endpoint_id: EndpointId, event_id: EventId) -> Any:
    """One event of the log, with every attempt to deliver it."""
    endpoint = await _endpoint(request, endpoint_id, or_deleted=True)
    row = await run_in_db_thread(store.logged, endpoint, event_id)
    return {**logged_event(row, endpoint, with_attempts=True), "request_id": request.request_id}


async def replay_event(request: HttpRequest, endpoint_id: EndpointId, event_id: EventId) -> Any:
    """Send an event once more, under the same `webhook-id`, whatever became of it before."""
    endpoint = await _endpoint(request, endpoint_id)
    row = await run_in_db_thread(store.replay, endpoint, event_id)
    return {**logged_event(row, endpoint), "request_id": request.request_id}


async def replay_failed_events(request: HttpRequest, endpoint_id: EndpointId, body: schemas.ReplayRequest) -> Any:
    """Send everything once more that happened since a time and failed or was canceled."""
    endpoint = await _endpoint(request, endpoint_id)
    since = body.since if body.since.tzinfo else body.since.replace(tzinfo=UTC)
    now = timezone.now()
    since = min(max(since, now - timedelta(days=366)), now)  # what lies at the ends of time no database compares
    count = await run_in_db_thread(store.replay_failed, endpoint, since)
    return {"replayed": count, "request_id": request.request_id}


ONE = "/webhook_endpoints/{endpoint_id}"
OPERATIONS: tuple[tuple[str, str, Callable[..., Any], type[Any], str], ...] = (
    ("POST", "/webhook_endpoints", create_endpoint, schemas.CreatedEndpoint, "Create an endpoint"),
    ("GET", "/webhook_endpoints", list_endpoints, schemas.EndpointList, "List endpoints"),
    ("GET", ONE, retrieve_endpoint, schemas.EndpointReply, "Look at an endpoint"),
    ("PUT", ONE, update_endpoint, schemas.EndpointReply, "Change an endpoint"),
    ("DELETE", ONE, delete_endpoint, schemas.Deleted, "Delete an endpoint"),
    ("POST", f"{ONE}/enable", enable_endpoint, schemas.EndpointReply, "Enable an endpoint"),
    ("POST", f"{ONE}/disable", disable_endpoint, schemas.EndpointReply, "Disable an endpoint"),
    ("POST", f"{ONE}/reset_secret", reset_secret, schemas.NewSecret, "Reset the signing secret"),
    ("POST", f"{ONE}/test", test_endpoint, schemas.TestReply, "Send a test event"),
    ("GET", f"{ONE}/events", list_events, schemas.EventPage, "Read the log"),
    ("POST", f"{ONE}/events/replay", replay_failed_events, schemas.ReplayReply, "Send undelivered events again"),
    ("GET", f"{ONE}/events/{{event_id}}", retrieve_event, schemas.EventReply, "Look at an event"),
    ("POST", f"{ONE}/events/{{event_id}}/replay", replay_event, schemas.EventReply, "Send an event again"),
)
"""Method, path, function, answer and title of each."""


def router_at(root: str) -> Router:
    """The operations, to be put at `/api/v1/<root>`."""
    router = Router(tags=["Webhooks"])
    for method, path, operation, response, summary in OPERATIONS:
        router.add_api_operation(
            path,
            [method],
            operation,
            response=response,
            summary=summary,
            operation_id=f"{root}_{operation.__name__}",
            exclude_unset=True,
        )
    return router


async def _admit(request: HttpRequest) -> Caller:
    """Return the authenticated caller, whose key must have the scope `webhooks`.

    Raises:
        AccessDenied: if the key may not be used for webhooks.
        Throttled: if the account calls too often.
    """
    caller: Caller = request.auth
    caller.require("webhooks")
    await rates().admit(caller.account_id, "webhooks")
    return caller


async def _endpoint(request: HttpRequest, endpoint_id: str, *, or_deleted: bool = False) -> WebhookEndpoint:
    """An endpoint of the caller's workspace.

    Raises:
        NotFound: if the workspace does not have it.
    """
    caller = await _admit(request)
    return await run_in_db_thread(store.find, caller.workspace_id, endpoint_id, or_deleted=or_deleted)


async def _until_quiet(endpoint: WebhookEndpoint) -> None:
    """Wait for calls that had begun, or were about to, when the endpoint was closed to new ones.

    They may be another process's, so the rows are asked. A sender that was killed leaves a row in that state:
    it is given as long as a call may take.
    """
    for pause_s in pauses(TOTAL_S + 1.0):
        if not await run_in_db_thread(store.is_delivering, endpoint):
            return
        await asyncio.sleep(pause_s)


def pauses(in_all_s: float) -> Iterator[float]:
    """Yield growing pauses in seconds between looks at the database, `in_all_s` together."""
    pause_s = FIRST_PAUSE_S
    while in_all_s > 0:
        yield min(pause_s, in_all_s)
        in_all_s -= pause_s
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _reply(request: HttpRequest, endpoint: WebhookEndpoint) -> dict[str, object]:
    return {**endpoint_record(endpoint), "request_id": request.request_id}
