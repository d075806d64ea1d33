"""A session that another service serves, as events and times alone."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from voiceapp.errors import FloodError, LocalProtocolError
from voiceapp.protocol.forwarded.session import AGAIN_S, TRACK_FORMATS, ForwardedSession, Out
from voiceapp.protocol.forwarded.states import FLOOR_STEPS, PHASE_STEPS, Floor, Phase
from voiceapp.protocol.states import step
from voiceapp.protocol.wire import events as ev

WHERE: dict[str, Any] = {"response_id": "resp_1", "item_id": "item_1", "output_index": 0, "content_index": 0}
SESSION = {"id": "theirs", "turn_detection": {"type": "server_vad"}}
STARTED: dict[str, Any] = {"audio_start_ms": 100, "item_id": "item_u"}
STOPPED: dict[str, Any] = {"audio_end_ms": 500, "item_id": "item_u"}
DONE: dict[str, Any] = {"response": {"id": "resp_1", "status": "completed"}}


class Service:
    def __init__(self, **about: Any) -> None:
        self.core = ForwardedSession("sess_1", "upstream", {}, **about)
        self.created = self.core.opened({"type": "session.created", "session": dict(SESSION)}, 0.0)

    def says(self, type_: str, now: float = 1.0, **fields: Any) -> list[Out]:
        wire = {"type": type_, "event_id": "event_1", **fields}
        if type_ == "response.created":
            self.core.begin(wire)
        return self.core.hear(wire, "", now)

    def speaks(self, seconds: int = 10, now: float = 1.0) -> None:
        self.says("response.created", now, response={"id": "resp_1"})
        delta = base64.b64encode(bytes(48_000 * seconds)).decode()
        self.says("response.audio.delta", now, **WHERE, delta=delta)


def types(found: list[Out]) -> list[str]:
    return [event.type if isinstance(event, ev.ServerEvent) else type(event).__name__ for event in found]


def test_every_step_of_a_turn_is_known_and_none_follows_the_end() -> None:
    steps = {name for _, name in FLOOR_STEPS}
    assert set(FLOOR_STEPS) == {(floor, name) for floor in Floor for name in steps}
    assert set(PHASE_STEPS.values()) == set(Phase) - {Phase.OPENING}
    with pytest.raises(LocalProtocolError):
        step(PHASE_STEPS, Phase.FINISHED, "open")


def test_a_session_has_the_names_that_it_has_here() -> None:
    (created,) = Service().created
    assert isinstance(created, ev.SessionCreated)
    assert (created.session["id"], created.session["model"]) == ("sess_1", "upstream")


def test_after_an_interruption_the_service_is_told_what_was_heard() -> None:
    service = Service(has_track=True)
    assert service.core.replay.settings == TRACK_FORMATS
    service.speaks(10, now=1.0)
    found = service.says("input_audio_buffer.speech_started", 3.5, **STARTED)
    assert types(found) == ["input_audio_buffer.speech_started", "PlayoutCut"]
    (told,) = service.core.to_service
    assert (told["type"], told["item_id"], told["audio_end_ms"]) == ("conversation.item.truncate", "item_1", 2500)
    assert service.core.left_s(3.5) == 0


@pytest.mark.parametrize(
    ("about", "settings"), [({}, {}), ({"has_track": True}, {"turn_detection": {"interrupt_response": False}})]
)
def test_where_nothing_is_played_or_interrupted_nothing_falls_silent(
    about: dict[str, Any], settings: dict[str, Any]
) -> None:
    service = Service(**about)
    service.says("session.updated", session={**SESSION, **settings})
    service.speaks()
    assert types(service.says("input_audio_buffer.speech_started", 3.5, **STARTED))[1:] == []
    assert not service.core.to_service


@pytest.mark.parametrize("busy", ["speech", "stopped", "response", "played"])
def test_a_session_is_renewed_at_the_first_silence_after_its_limit(busy: str) -> None:
    service = Service(limit_s=60.0, has_track=True)
    core = service.core
    assert core.next_timer(1.0) == 60.0
    if busy == "speech":
        service.says("input_audio_buffer.speech_started", **STARTED)
    elif busy == "stopped":
        service.says("input_audio_buffer.speech_stopped", **STOPPED)
    else:
        service.speaks(10, now=59.0)
        if busy == "played":
            service.says("response.done", 59.0, **DONE)
    assert not core.is_due(61.0)
    assert core.next_timer(61.0) == (69.0 if busy == "played" else None)
    if busy == "response":
        service.says("response.done", 70.0, **DONE)
    elif busy != "played":
        service.says("input_audio_buffer.speech_stopped", 70.0, **STOPPED, reason="noise")
    assert core.is_due(70.0)
    core.renew()
    assert core.phase is Phase.RENEWING
    core.kept(70.0)
    assert (core.is_due(71.0), core.next_timer(71.0)) == (False, 70.0 + AGAIN_S)


def test_a_loss_is_told_to_a_caller_who_notices_it() -> None:
    service = Service()
    assert service.core.lost() == []
    service.core.begun(1.0)
    service.speaks()
    assert types(service.core.lost()) == ["error", "response.done", "TurnEnded"]
    service.core.begun(2.0)
    service.says("input_audio_buffer.speech_started", **STARTED)
    assert types(service.core.lost()) == ["error"]
    assert not service.core.may_renew  # three in a row
    service.core.begun(3.0)
    service.says("response.done", **DONE)
    assert service.core.may_renew


def test_a_loss_after_the_caller_has_asked_for_the_end_is_the_end() -> None:
    service = Service()
    service.core.take({"type": "session.finish"})
    assert service.core.phase is Phase.FINISHING
    assert service.core.lost() == []
    assert service.core.phase is Phase.FINISHED


def test_what_the_caller_asks_for_is_waited_for() -> None:
    service = Service()
    asked = service.core.take({"type": "response.create"})
    assert service.core.is_asked(asked)
    assert not service.core.is_quiet
    error = {"code": "no", "message": "No.", "event_id": asked["event_id"]}
    (refused,) = service.says("error", error=error)
    assert isinstance(refused, ev.ErrorEvent)
    assert refused.about is None  # the id was given here
    assert service.core.is_quiet
    assert not service.core.is_asked(service.core.take({"type": "input_audio_buffer.clear"}))


def test_audio_that_comes_too_fast_is_refused() -> None:
    service = Service()
    assert service.core.append(32_000, 0.0) == 1000
    for _ in range(19):
        service.core.append(32_000, 0.0)
    with pytest.raises(FloodError):
        service.core.append(32_000, 0.0)
