"""Admission to a session: caller, model and terms, decided once, for every door.

A door is a value. It says how its media arrive and when its sessions take their seats; what is refused, in which order
and with which words, is the same for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import available_timezones

from django.conf import settings

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.charges import require_budget, require_model
from voiceapp.accounts.seats import Seat, seats
from voiceapp.catalogue.cards import ModelCard
from voiceapp.drain import drain_event
from voiceapp.engines.interfaces import AgentTerms, Call
from voiceapp.engines.models.providers import realtime_model_of
from voiceapp.errors import EngineUnavailable, InvalidParameter, ServiceUnavailable
from voiceapp.health import readiness
from voiceapp.realtime import bridge
from voiceapp.realtime.answering import languages_of, who_answers, who_is_prompted
from voiceapp.realtime.doors import Door
from voiceapp.realtime.lifetime.end_conditions import EndConditions, end_conditions
from voiceapp.realtime.records.recorder import Beginning, Recorder
from voiceapp.realtime.transports.interface import Transport

WAYS = {"aoq": "AOQ", "webrtc": "WebRTC", "websocket": "WebSocket"}


@dataclass(frozen=True, slots=True)
class Admitted:
    """A session that may begin."""

    card: ModelCard
    provider: Any
    """Provider of the model: a `RealtimeModel`, or what forwards the offers of a card that does so."""
    call: Call
    beginning: Beginning
    recorder: Recorder
    limits: EndConditions
    seat: Seat
    """Release it when the session does not begin; `run` does when it is over."""

    @property
    def is_passed_on(self) -> bool:
        """Another service is told of it, and it is not seen here."""
        return self.beginning.is_passed_on

    def opened_with(self, settings: dict[str, Any], *, listens_only: bool) -> Admitted:
        """Return the session with settings that came with its handshake; see `Call`."""
        return replace(self, call=replace(self.call, opening=settings, listens_only=listens_only))

    def forwarded(self) -> Admitted:
        """Return the session, with the caller's messages passed on as they are."""
        return replace(self, call=replace(self.call, is_forwarded=True))

    async def prepared(self) -> Admitted:
        """Return the session when its model was reached; its seat is given back if it cannot be.

        Raises:
            EngineError: the model cannot be reached.
        """
        try:
            await self.provider.prepare(self.call)
        except BaseException:
            self.seat.release()
            raise
        return self

    async def run(self, transport: Transport) -> None:
        """Carry the session to its end."""
        with self.recorder.traced():
            await bridge.run(transport, self.provider, self.call, self.recorder, self.limits, self.seat)


async def admit(
    caller: Caller,
    door: Door,
    model: str,
    address: str,
    *,
    time_zone: str = "",
    languages: str = "",
    session_key: str = "",
    variables: Mapping[str, str] | None = None,
) -> Admitted:
    """Let a caller open a session, or say why not.

    `address` is the Internet address that they call from (empty: unknown), `time_zone` the IANA name that they give of
    theirs (one that does not exist becomes the server's), `languages` their header `Accept-Language`, `session_key`
    that of the login by which they are known, and `variables` are for the instructions of the agent that `model` may
    name.

    Raises:
        AccessDenied: the caller's key may not be used for sessions, or not for this model, or its budget is used up.
        InvalidParameter: no model is named, or one that is not reached through this door.
        ModelNotFound: no model of the door's kind has this name.
        ServiceUnavailable: the server is stopping.
        EngineUnavailable: the server is not ready, or the model cannot serve now.
        Throttled: no seat is free.
    """
    if drain_event().begun:
        raise ServiceUnavailable("The server is stopping; connect again in a moment.")
    caller.require("realtime")
    if not model:
        raise InvalidParameter("The query parameter 'model' is missing.", param="model")
    answerer = await who_answers(caller, door.kind, model, variables)
    card = answerer.card
    require_model(caller, answerer.named, card.kind)
    await require_budget(caller, model, card.kind)
    if door.kind == "realtime" and door.transport not in card.transports:
        ways = " or ".join(WAYS[transport] for transport in card.transports)
        raise InvalidParameter(f"The model '{model[:80]}' is reached by {ways} only.", param="model")
    if reasons := await readiness():
        raise EngineUnavailable(reasons[0].message, remedy=reasons[0].remedy)
    provider = realtime_model_of(card)
    provider.check()
    seat = Seat(seats(), caller, address, answerer.seats, card.runs_here)
    await (seat.take() if door.takes_seat else seats().check(caller, address, runs_here=card.runs_here))
    beginning = Beginning(
        caller=caller,
        model=model,
        transport=door.transport_of(card),
        entrance=door.entrance,
        client_address=address,
        agent=answerer.agent,
    )
    recorder = Recorder(beginning)
    lifetime_s = answerer.lasts_s(seat.lifetime_s)
    zone = time_zone if time_zone in _time_zones() else settings.LOCAL_TIME_ZONE

    async def prompted(prompt: object) -> AgentTerms:
        named, other, agent = await who_is_prompted(caller, prompt)
        require_model(caller, other.named, "realtime")
        await seat.move(other.seats)
        recorder.answered_by(named, agent)
        return AgentTerms(other.terms(zone), other.lasts_s(seat.lifetime_s))

    call = Call(
        session_id=beginning.session_id,
        model=model,
        is_guest=caller.is_guest,
        guest_lasts_s=lifetime_s if caller.is_guest else None,
        time_zone=zone,
        languages=languages_of(languages),
        input_rate_hz=door.decoded_rate_hz or card.input_rate_of(model),
        has_track=door.decoded_rate_hz is not None,
        prompted=prompted,
        **answerer.terms(zone),
    )
    limits = end_conditions(
        caller,
        session_key,
        lifetime_s=lifetime_s,
        ends_with_temporary_key=door.ends_with_temporary_key,
    )
    return Admitted(card, provider, call, beginning, recorder, limits, seat)


@functools.cache
def _time_zones() -> frozenset[str]:
    """Names that a caller may give. Looking them up reads hundreds of files: too long for every handshake."""
    return frozenset(available_timezones())
