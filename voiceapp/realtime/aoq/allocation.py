"""The allocation of AOQ sessions: from an HTTP request to a grant."""

from __future__ import annotations

import ipaddress
import json
from functools import partial

from django.http import HttpRequest, HttpResponse, JsonResponse

from voiceapp.accounts.addresses import address_of_request
from voiceapp.accounts.auth import Caller
from voiceapp.errors import InvalidParameter
from voiceapp.realtime.aoq import grants, relays
from voiceapp.realtime.doors import Door
from voiceapp.realtime.forwarding import forward, report_headers
from voiceapp.realtime.handshake import listening_model
from voiceapp.realtime.lifetime.resume import arrive_by_request

TRANSPORT_HEADERS = ("x-service-rtc-transport", "x-dashscope-rtc-transport")
"""Header of the interface, and the one that client programs have built in."""
NO_STORE = {"Cache-Control": "no-store"}


def wants_grant(request: HttpRequest) -> bool:
    """Return whether a request asks for an AOQ session instead of bringing an SDP offer."""
    return any(request.headers.get(name, "").strip().lower() == "moq" for name in TRANSPORT_HEADERS)


async def allocate(request: HttpRequest, caller: Caller, door: Door, *, session_key: str = "") -> HttpResponse:
    """Issue a grant; `session_key` is that of the login by which the caller is known.

    Raises:
        RequestRefused: a body that cannot be read, or a caller who is not admitted.
        EngineUnavailable: no relay lives, or the service that serves the model gives no grant.
    """
    client_ip = client_ip_of(request.body)
    named = request.GET.get("model", "")
    model = listening_model(named) if door.runs_tasks and named else named
    arrival = await arrive_by_request(request, caller, door, model, session_key=session_key)
    admitted = arrival.admitted
    if admitted.is_passed_on:
        near = client_ip or address_of_request(request)
        ask = partial(admitted.provider.request_grant, model, near, runs_tasks=door.runs_tasks)
        grant = await forward(admitted, ask)
        return HttpResponse(
            grant,
            content_type="application/json",
            headers={**NO_STORE, **report_headers(admitted.beginning)},
        )
    if arrival.session is None and not door.runs_tasks:
        await admitted.prepared()
        admitted.provider.abandon(admitted.call)  # the caller is admitted anew by the relay
    routes = await relays.routes_for(client_ip or address_of_request(request))
    issued = await grants.issue(admitted, routes, session_key=session_key, runs_tasks=door.runs_tasks)
    return JsonResponse(issued.to_wire(), headers=NO_STORE)


def client_ip_of(body: bytes) -> str:
    """The field `clientIp` of the body; empty when there is none. Other fields are ignored.

    Raises:
        InvalidParameter: the body is not a JSON object, or the field not an Internet address.
    """
    if not body.strip():
        return ""
    try:
        found = json.loads(body.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise InvalidParameter("The body is not JSON in UTF-8. Send {} or an object with clientIp.") from None
    if not isinstance(found, dict):
        raise InvalidParameter("The body must be a JSON object.")
    given = found.get("clientIp")
    if given is None:
        return ""
    try:
        if not isinstance(given, str):
            raise ValueError
        return str(ipaddress.ip_address(given))
    except ValueError:
        raise InvalidParameter(
            "clientIp must be an Internet address, such as 203.0.113.9, or left out.", param="clientIp"
        ) from None
