"""The operations on endpoints: fields, rules, refusals, and who sees whose."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.outbound.test_client import HOSTILE
from tests.webhooks.conftest import Program, Receiver
from voiceapp.leases.loop import Loop
from voiceapp.webhooks.events import NEVER_HERE, EventKind
from voiceapp.webhooks.models import Delivery, WebhookEndpoint, WebhookEvent
from voiceapp.webhooks.retention import purge_events

pytestmark = pytest.mark.django_db(transaction=True)

URL = "http://127.0.0.1:9/hook"
FIELDS = {
    "id",
    "description",
    "url",
    "events",
    "status",
    "disabled_reason",
    "consecutive_fail",
    "last_success_at",
    "last_failure_at",
    "created_at",
    "updated_at",
    "request_id",
}
ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


async def test_a_new_endpoint_has_every_field_and_tells_its_secret(program: Program) -> None:
    body = {"url": URL, "events": ["session.updated", "task.finished", "session.updated"], "description": "Ours"}
    made = await program.good("POST", "", body)
    assert made.keys() == FIELDS | {"signing_secret"}
    assert re.fullmatch(r"wep_[0-9A-HJKMNP-TV-Z]{26}", made["id"])
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", made["signing_secret"])
    assert ISO.fullmatch(made["created_at"])
    assert (made["url"], made["description"], made["status"]) == (URL, "Ours", "ACTIVE")
    assert made["events"] == ["session.updated", "task.finished"]
    assert (made["disabled_reason"], made["consecutive_fail"], made["last_success_at"]) == (None, 0, None)


async def test_the_secret_is_told_once_and_kept_sealed(program: Program) -> None:
    made = await program.good("POST", "", {"url": URL, "events": ["task.finished"]})
    secret = made["signing_secret"]
    shown = [await program.call("GET"), await program.call("GET", f"/{made['id']}")]
    shown.append(await program.call("PUT", f"/{made['id']}", {"description": "x"}))
    shown += [await program.call("POST", f"/{made['id']}/{what}") for what in ("disable", "enable")]
    for answer in shown:
        assert answer.status_code == 200
        assert "signing_secret" not in answer.json()
        assert b"whsec_" not in answer.content
    row = await WebhookEndpoint.objects.aget()
    assert secret.removeprefix("whsec_") not in json.dumps(
        [str(getattr(row, name.attname)) for name in WebhookEndpoint._meta.fields]
    )
    assert row.secrets(timezone.now()) == [secret]


async def test_both_roots_serve_the_same_endpoints(program: Program) -> None:
    made = await program.subscribe(URL)
    program.root = "/api/v1/agentsvc/webhook_endpoints"
    found = await program.good("GET", f"/{made['id']}")
    assert found.keys() == FIELDS
    assert found["id"] == made["id"]
    assert (await program.good("GET"))["data"][0].keys() == FIELDS - {"request_id"}
    gone = await program.good("DELETE", f"/{made['id']}/")
    assert gone.keys() == {"request_id"}
    assert (await program.bad("GET", f"/{made['id']}"))[:2] == (404, "11800001")


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({}, "url"),
        ({"url": URL}, "events"),
        ({"url": URL, "events": []}, "session.created"),
        ({"url": URL, "events": ["*"]}, "session.created"),
        ({"url": URL, "events": ["agent.danced"]}, "task.finished"),
        ({"url": URL, "events": ["webhook.test"]}, "task.finished"),
        ({"url": URL, "events": "task.finished"}, "events"),
        ({"url": URL, "events": ["task.finished"], "description": "x" * 257}, "may have at most 256 characters."),
        ({"url": URL, "events": ["task.finished"] * 101}, "events may have at most 100 items."),
        ({"url": "ftp://example.org/", "events": ["task.finished"]}, "http"),
        ({"url": "http://somebody:secret@example.org/", "events": ["task.finished"]}, "login"),
        ({"url": "not an address", "events": ["task.finished"]}, "address"),
        ([], "object"),
    ],
)
async def test_what_cannot_be_is_refused_in_a_sentence(program: Program, body: Any, named: str) -> None:
    status, code, message = await program.bad("POST", "", body)
    assert (status, code) == (400, "11800016")
    assert named in message
    assert not await WebhookEndpoint.objects.aexists()


async def test_no_way_leads_inside(program: Program, settings: Settings) -> None:
    made = await program.subscribe(URL)
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    for url in (template.format(port=9) for template in HOSTILE):
        assert (await program.bad("POST", "", {"url": url, "events": ["task.finished"]}))[0] == 400, url
        assert (await program.bad("PUT", f"/{made['id']}", {"url": url}))[0] == 400, url
    assert [endpoint["url"] for endpoint in (await program.good("GET"))["data"]] == [URL]


async def test_a_workspace_has_twenty_at_most_however_they_come(program: Program, stranger: Program) -> None:
    answers = await asyncio.gather(
        *(program.call("POST", "", {"url": URL, "events": ["task.finished"]}) for _ in range(25))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 20 + [409] * 5
    assert (
        "20 webhook endpoints"
        in next(answer for answer in answers if answer.status_code == 409).json()["error"]["message"]
    )
    await stranger.subscribe(URL)
    first = (await program.good("GET"))["data"][0]
    await program.good("DELETE", f"/{first['id']}")
    await program.subscribe(URL)


async def test_a_change_touches_what_it_names(program: Program) -> None:
    made = await program.good("POST", "", {"url": URL, "events": ["task.finished"], "description": "Ours"})
    changed = await program.good("PUT", f"/{made['id']}", {"events": ["session.created"]})
    assert (changed["events"], changed["url"], changed["description"]) == (["session.created"], URL, "Ours")
    assert changed["updated_at"] > made["updated_at"]
    changed = await program.good("PUT", f"/{made['id']}", {"url": f"{URL}/2", "description": None})
    assert (changed["events"], changed["url"], changed["description"]) == (["session.created"], f"{URL}/2", "")
    assert (await program.bad("PUT", f"/{made['id']}", {"events": ["vault.opened"]}))[0] == 400
    again = await program.good("PUT", f"/{made['id']}", {})
    assert (again["url"], again["updated_at"]) == (f"{URL}/2", changed["updated_at"])


async def test_enabling_what_is_active_changes_nothing(program: Program) -> None:
    made = await program.subscribe(URL)
    since = timezone.now() - timedelta(minutes=59)
    await WebhookEndpoint.objects.aupdate(consecutive_fail=20, first_fail_at=since)
    enabled = await program.good("POST", f"/{made['id']}/enable")
    assert enabled["updated_at"] == made["updated_at"]
    assert (await WebhookEndpoint.objects.aget()).first_fail_at == since


async def test_enabling_and_disabling_say_how_things_stand(program: Program) -> None:
    made = await program.subscribe(URL)
    for _ in range(2):
        record = await program.good("POST", f"/{made['id']}/disable")
        assert (record["status"], record["disabled_reason"]) == ("DISABLED", "MANUAL")
    for _ in range(2):
        record = await program.good("POST", f"/{made['id']}/enable")
        assert (record["status"], record["disabled_reason"]) == ("ACTIVE", None)


async def test_a_reset_secret_counts_at_once(program: Program, receiver: Receiver, sender: Loop) -> None:
    made = await program.subscribe(receiver.url)
    reset = await program.good("POST", f"/{made['id']}/reset_secret")
    assert reset.keys() == {"id", "signing_secret", "updated_at", "request_id"}
    await program.happen()
    await program.until(made, "SUCCEEDED")
    receiver.verified(reset["signing_secret"])
    with pytest.raises(Exception, match="No matching signature"):
        receiver.verified(made["signing_secret"])


async def test_an_old_secret_may_sign_on_for_a_day(program: Program, receiver: Receiver, sender: Loop) -> None:
    made = await program.subscribe(receiver.url)
    reset = await program.good("POST", f"/{made['id']}/reset_secret", {"keep_old_secret_active_for_24_hours": True})
    await program.happen()
    await program.until(made, "SUCCEEDED")
    receiver.verified(made["signing_secret"])
    receiver.verified(reset["signing_secret"])

    row = await WebhookEndpoint.objects.aget()
    assert row.old_secret_until is not None
    assert row.secrets(row.old_secret_until - timedelta(seconds=1)) == [reset["signing_secret"], made["signing_secret"]]
    assert row.secrets(row.old_secret_until + timedelta(seconds=1)) == [reset["signing_secret"]]
    assert timedelta(hours=23, minutes=59) < row.old_secret_until - timezone.now() < timedelta(hours=24, minutes=1)


async def test_a_new_secret_counts_also_where_the_old_one_cannot_be_read(
    program: Program, receiver: Receiver, settings: Settings
) -> None:
    made = await program.subscribe(receiver.url)
    settings.SECRET_KEY = "another key, and the one before is not known any more"
    assert (await program.bad("POST", f"/{made['id']}/test"))[:2] == (409, "SigningSecretLost")
    reset = await program.good("POST", f"/{made['id']}/reset_secret", {"keep_old_secret_active_for_24_hours": True})
    await program.good("POST", f"/{made['id']}/test")
    receiver.verified(reset["signing_secret"])


async def test_a_test_is_sent_at_once_and_logged_and_counts_for_nothing(program: Program, receiver: Receiver) -> None:
    made = await program.subscribe(receiver.url)
    sent = await program.good("POST", f"/{made['id']}/test")
    told = receiver.verified(made["signing_secret"])
    assert (sent.pop("status_code"), sent.pop("answer_start")) == (200, "thanks")
    assert 0 <= sent.pop("duration_ms") < 5000
    assert {**told, "request_id": sent["request_id"]} == sent
    assert told["data"] == {
        "id": made["id"],
        "type": "webhook.test",
        "workspace_id": program.member.workspace.public_id,
    }
    (logged,) = await program.log(made)
    assert (logged["id"], logged["delivery"]["status"]) == (told["id"], "SUCCEEDED")
    assert (await program.good("GET", f"/{made['id']}"))["last_success_at"] is None


async def test_a_test_that_fails_says_what_the_receiver_did(program: Program, receiver: Receiver) -> None:
    receiver.statuses, receiver.answer = [500], f"no\x1b[2J\r\ndatabase\u202e {'x' * 2000}"
    made = await program.subscribe(receiver.url)
    status, code, message = await program.bad("POST", f"/{made['id']}/test")
    assert (status, code) == (502, "11800015")
    assert re.fullmatch(
        "The receiver responded with status 500 after \\d+ ms. "
        "Its response begins: no\ufffd\\[2J database\ufffd x{100,200}",
        message,
    )
    nobody = await program.subscribe("http://127.0.0.1:9/")
    status, code, message = await program.bad("POST", f"/{nobody['id']}/test")
    assert (status, code) == (502, "11800015")
    assert "could not be reached" in message
    assert (await program.good("GET", f"/{made['id']}"))["consecutive_fail"] == 0
    await program.good("POST", f"/{made['id']}/disable")
    assert (await program.bad("POST", f"/{made['id']}/test"))[0] == 409


async def test_the_log_is_read_page_by_page(program: Program, receiver: Receiver) -> None:
    made = await program.good("POST", "", {"url": receiver.url, "events": ["task.finished", "session.created"]})
    for number in range(7):
        kind = EventKind.SESSION_CREATED if number == 3 else EventKind.TASK_FINISHED
        await program.happen(kind, f"thing-{number}")
    seen: list[str] = []
    page = None
    for size in (3, 3, 1):
        query = {"limit": 3} | ({"page": page} if page else {})
        answer = await program.good("GET", f"/{made['id']}/events", **query)
        assert len(answer["data"]) == size
        seen += [event["data"]["id"] for event in answer["data"]]
        page = answer["next_page"]
    assert page is None
    assert seen == [f"thing-{number}" for number in reversed(range(7))]
    [only] = await program.log(made, type="session.created")
    assert only["data"]["id"] == "thing-3"
    assert await program.log(made, status="FAILED") == []
    for wrong in ({"limit": 0}, {"limit": 101}, {"page": "§"}, {"page": "abc"}, {"status": "LOST"}, {"limit": "x"}):
        assert (await program.bad("GET", f"/{made['id']}/events", **wrong))[:2] == (400, "11800016")


async def test_the_log_stays_a_week_also_of_a_deleted_endpoint(program: Program, receiver: Receiver) -> None:
    made = await program.subscribe(receiver.url)
    await program.happen()
    await program.good("DELETE", f"/{made['id']}")
    [event] = await program.log(made)
    assert event["delivery"]["status"] == "CANCELED"
    assert (await program.bad("POST", f"/{made['id']}/events/{event['id']}/replay"))[0] == 404

    now = timezone.now()
    assert await sync_to_async(purge_events)(now + timedelta(days=6, hours=23)) == 0
    assert await WebhookEvent.objects.acount() == 1
    assert await sync_to_async(purge_events)(now + timedelta(days=7, minutes=1)) == 1
    assert not await WebhookEvent.objects.aexists()
    assert not await Delivery.objects.aexists()
    assert not await WebhookEndpoint.objects.aexists()


async def test_one_event_is_sent_again_under_its_old_name(program: Program, receiver: Receiver, sender: Loop) -> None:
    made = await program.subscribe(receiver.url)
    await program.happen()
    [event] = await program.until(made, "SUCCEEDED")
    again = await program.good("POST", f"/{made['id']}/events/{event['id']}/replay")
    assert (again["id"], again["delivery"]["is_replay"]) == (event["id"], True)
    await receiver.until(2)
    await program.until(made, "SUCCEEDED")
    assert len(set(receiver.bodies)) == 1
    assert {call["webhook-id"] for call in receiver.calls} == {event["id"]}
    one = await program.good("GET", f"/{made['id']}/events/{event['id']}")
    assert len(one["delivery"]["attempts"]) == one["delivery"]["attempt_count"] == 2
    [logged] = await program.log(made)
    assert logged["delivery"]["attempt_count"] == 2
    sent = json.loads(receiver.bodies[0])
    for shown in (one, logged, again):
        assert {name: shown[name] for name in sent} == sent
    assert "attempts" not in logged["delivery"].keys() | again["delivery"].keys()


async def test_what_is_on_its_way_is_not_sent_again(program: Program, receiver: Receiver) -> None:
    made = await program.subscribe(receiver.url)
    await program.happen()
    [event] = await program.log(made)
    status, _, message = await program.bad("POST", f"/{made['id']}/events/{event['id']}/replay")
    assert (status, "on its way" in message) == (409, True)
    await program.good("POST", f"/{made['id']}/disable")
    assert (await program.bad("POST", f"/{made['id']}/events/{event['id']}/replay"))[0] == 409


async def test_all_that_failed_since_a_time_is_sent_again(
    program: Program, receiver: Receiver, sender: Loop, settings: Settings
) -> None:
    settings.WEBHOOK_RETRY_SCHEDULE = []
    receiver.statuses = [500] * 4
    made = await program.subscribe(receiver.url)
    for number in range(4):
        await program.happen(data_id=f"task-{number}")
    await program.until(made, "FAILED")
    await program.happen(data_id="good")
    await program.until(made, "FAILED", "SUCCEEDED")
    old = await Delivery.objects.order_by("pk").select_related("event").afirst()
    assert old is not None
    await WebhookEvent.objects.filter(pk=old.event.pk).aupdate(created_at=timezone.now() - timedelta(hours=2))

    since = (timezone.now() - timedelta(hours=1)).isoformat()
    assert (await program.good("POST", f"/{made['id']}/events/replay", {"since": since}))["replayed"] == 3
    await receiver.until(8)
    logged = await program.until(made, "FAILED", "SUCCEEDED")
    assert [event["delivery"]["status"] for event in logged] == ["SUCCEEDED"] * 4 + ["FAILED"]


async def test_what_was_canceled_is_sent_again_with_what_failed(
    program: Program, receiver: Receiver, sender: Loop, settings: Settings
) -> None:
    settings.WEBHOOK_MAX_WAITING = 0
    made = await program.subscribe(receiver.url)
    await program.happen()
    await program.until(made, "CANCELED")
    answer = await program.good("POST", f"/{made['id']}/events/replay", {"since": made["created_at"]})
    assert answer["replayed"] == 1
    await receiver.until(1)
    await program.until(made, "SUCCEEDED")


@pytest.mark.parametrize("since", ["yesterday", "1", "", 1, 1.5, True, None, [], "2026-13-01T00:00:00Z"])
async def test_what_is_no_time_is_refused(program: Program, since: Any) -> None:
    made = await program.subscribe(URL)
    status, code, message = await program.bad("POST", f"/{made['id']}/events/replay", {"since": since})
    assert (status, code) == (400, "11800016")
    assert message.startswith("since is refused: it is not a time in the form of ISO 8601")


@pytest.mark.parametrize(
    ("since", "replayed"),
    [
        ("9999-12-31T23:59:59-23:59", 0),
        ("2999-01-01T00:00:00Z", 0),
        ("0001-01-01T00:00:00+23:59", 1),
        ("2026-01-01", 1),
    ],
)
async def test_any_time_can_be_asked_for(program: Program, since: str, replayed: int) -> None:
    made = await program.subscribe(URL)
    await program.happen()
    await Delivery.objects.aupdate(status="FAILED", finish_at=timezone.now())
    answer = await program.good("POST", f"/{made['id']}/events/replay", {"since": since})
    assert answer["replayed"] == replayed


async def test_every_kind_of_the_vendors_library_can_be_subscribed_to(program: Program) -> None:
    """Kinds of things that do not exist here are kept with the endpoint, so that existing set-up code runs."""
    kinds = [*(kind for kind in EventKind if kind.startswith("session.")), *NEVER_HERE]
    assert len(kinds) == 32
    made = await program.good("POST", "", {"url": URL, "events": kinds})
    assert made["events"] == kinds
