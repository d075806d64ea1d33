"""The voice page and its configuration, for everybody whom PUBLIC_PAGE lets in and for nobody else."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.models import LLAMA, UPSTREAM, offered
from voiceapp import health
from voiceapp.accounts.guests import guest_of
from voiceapp.accounts.models import Account, GuestSite
from voiceapp.accounts.seats import seats
from voiceapp.realtime.aoq.models import AoqRelay

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def open_to_guests(settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"


@pytest.fixture
def guest() -> Client:
    return Client()


@pytest.fixture
def person(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_user("paula", password="a long enough secret"))
    return client


def cookies_of(client: Client) -> dict[str, str]:
    return {name: morsel.value for name, morsel in client.cookies.items()}


def test_it_is_not_there_when_switched_off(person: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "off"
    for address in ("/", "/check", "/voice/config"):
        assert person.get(address).status_code == 404, address


def test_the_login_leads_to_no_other_site(person: Client) -> None:
    for elsewhere in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        signed_in = Client().post(
            "/login", {"username": "paula", "password": "a long enough secret", "next": elsewhere}
        )
        assert (signed_in.status_code, signed_in["Location"]) == (302, "/"), elsewhere


@pytest.mark.parametrize("address", ["/", "/check"])
def test_it_sends_strangers_to_the_login(guest: Client, person: Client, settings: Settings, address: str) -> None:
    settings.PUBLIC_PAGE = "login"
    answer = guest.get(address)
    assert (answer.status_code, answer["Location"]) == (302, f"/login?next={address}")
    assert person.get(address).status_code == 200


@pytest.mark.parametrize(("public", "offered"), [("guest", "/check?agent=voice"), ("login", "")])
def test_a_page_within_another_site_offers_the_check_that_its_visitors_may_open(
    guest: Client, settings: Settings, public: str, offered: str
) -> None:
    settings.PUBLIC_PAGE = public
    account = Account.objects.create(name="Guests of the shop")
    GuestSite.objects.create(origin="https://shop.example", account=account)
    page = guest.get("/embed?site=https://shop.example&agent=voice")
    assert f'data-check-url="{offered}"' in page.content.decode()
    assert (guest.get("/check?agent=voice").status_code == 200) == bool(offered)


def test_the_check_is_that_of_an_agent_and_of_none_that_does_not_exist(guest: Client) -> None:
    assert guest.get("/check?agent=nobody").status_code == 404
    assert b'data-config-url="/voice/config?agent=voice"' in guest.get("/check?agent=voice").content


def test_it_tells_a_stranger_to_sign_in_and_leaves_no_session(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "login"
    answer = guest.get("/voice/config")
    assert answer.status_code == 401
    assert answer.json()["code"] == "signed_out"
    assert not {"sessionid", "guest"} & guest.cookies.keys()


def test_it_opens_for_people_who_signed_in(person: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "login"
    answer = person.get("/")
    assert answer.status_code == 200
    assert b"Sign out" in answer.content
    assert b"Sign in" not in answer.content
    config = person.get("/voice/config").json()
    assert (config["signed_in"], config["guest"]) == (True, False)
    assert config["session_limit_s"] == settings.SESSION_LIFETIME_S


def test_it_tells_one_person_from_another_and_not_who_they_are(person: Client) -> None:
    other = Client()
    other.force_login(User.objects.create_user("quentin", password="a long enough secret"))
    paula, quentin = (client.get("/voice/config").json()["visitor"] for client in (person, other))
    assert paula == person.get("/voice/config").json()["visitor"]
    assert paula != quentin
    assert "paula" not in paula
    assert Client().get("/voice/config").json()["visitor"] == ""


def test_it_knows_a_guest_again_by_a_cookie(guest: Client, settings: Settings) -> None:
    settings.GUEST_SESSION_S = 180
    assert guest.get("/").status_code == 200
    config = guest.get("/voice/config").json()
    assert (config["signed_in"], config["guest"], config["session_limit_s"]) == (False, True, 180)
    name = guest_of(cookies_of(guest))
    guest.get("/voice/config")
    assert guest_of(cookies_of(guest)) == name != ""


def test_a_guest_who_is_told_to_sign_in_finds_where(guest: Client) -> None:
    page = guest.get("/").content.decode()
    assert re.search(r'<a class="quiet" id="sign-in" href="/login">.*<span>Sign in</span></a>', page)


def test_it_takes_no_cookie_that_somebody_made_up(guest: Client) -> None:
    assert guest_of({}) == guest_of({"guest": "made-up"}) == guest_of({"guest": "made-up:1x:2y"}) == ""
    guest.cookies["guest"] = "made-up:1x:2y"
    guest.get("/voice/config")
    assert guest_of(cookies_of(guest)) not in ("", "made-up")


def test_a_guest_who_only_looks_leaves_no_row(guest: Client) -> None:
    guest.get("/")
    guest.get("/voice/config")
    assert not Session.objects.exists()


def test_the_cookie_of_a_guest_is_not_for_scripts_or_other_sites(guest: Client, settings: Settings) -> None:
    settings.SESSION_COOKIE_SECURE = True
    guest.get("/voice/config")
    cookie = guest.cookies["guest"]
    assert (cookie["httponly"], cookie["secure"], cookie["samesite"]) == (True, True, "Lax")
    assert cookie["max-age"] == settings.SESSION_COOKIE_AGE


def test_it_names_models_voices_and_the_socket(guest: Client) -> None:
    config = guest.get("/voice/config").json()
    assert {"name": "voice", "title": "Voice assistant"}.items() <= config["models"][0].items()
    assert config["default_model"] == "voice"
    assert config["default_voice"] in [voice["name"] for voice in config["voices"]]
    assert {"name", "title", "language"} == set(config["voices"][0])
    assert config["socket_path"] == "/voice/socket"
    assert config["ready"] is (config["reasons"] == [])


def test_it_tells_relays_apart_that_were_started_again(guest: Client) -> None:
    def shown() -> str:
        return str(guest.get("/voice/config").json()["aoq_relays"])

    assert shown() == ""
    relay = AoqRelay.objects.create(
        endpoint="192.0.2.7", port=8443, fingerprint="ab" * 32, heartbeat_at=timezone.now(), served_by="here:1:2"
    )
    first = shown()
    AoqRelay.objects.filter(pk=relay.pk).update(load=3)
    assert shown() == first != ""
    AoqRelay.objects.filter(pk=relay.pk).update(served_by="here:2:3")
    assert shown() != first


OPERATORS_WORDS = re.compile(r"fetch_models|manage\.py|make models|[A-Z]+_[A-Z]+")


def not_ready(client: Client) -> str:
    [reason] = client.get("/voice/config").json()["reasons"]
    assert reason["code"] == "models_missing"
    return str(reason["message"])


@pytest.fixture
def bare(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server without models."""
    settings.MODELS_DIR = tmp_path
    monkeypatch.setattr(health, "_process", health.Readiness())


@pytest.mark.usefixtures("bare")
def test_it_says_to_operators_which_command_brings_the_models(operator: User) -> None:
    client = Client()
    client.force_login(operator)
    assert "`python manage.py fetch_models`" in not_ready(client)


@pytest.mark.usefixtures("bare")
def test_visitors_read_no_operators_words(guest: Client, person: Client, settings: Settings) -> None:
    for visitor in (guest, person):
        assert not_ready(visitor) == (
            "The voice models are not on this server yet. The operator of this server has to see to it."
        )
    settings.DEBUG = True  # a laptop: its visitor is its operator
    assert OPERATORS_WORDS.search(not_ready(guest))


def test_it_says_who_follows_instructions(guest: Client, settings: Settings) -> None:
    def followed() -> dict[str, bool]:
        models = guest.get("/voice/config").json()["models"]
        return {model["name"]: model["follows_instructions"] for model in models}

    usual = [model for model in settings.VOICE_MODELS if model.kind != "chat" or not model.chat.instructions]
    with offered(settings, [*usual, UPSTREAM]):
        assert followed() == {"voice": False, "upstream": True}
    with offered(settings, [LLAMA, *usual]):
        assert followed() == {"voice": True}


def test_it_says_what_leaves_this_server(guest: Client, settings: Settings) -> None:
    with offered(settings, [LLAMA, *settings.VOICE_MODELS, UPSTREAM]):
        models = guest.get("/voice/config").json()["models"]
    assert {model["name"]: model["leaves"] for model in models} == {"voice": "words", "upstream": "sound"}


def test_it_forbids_inline_scripts_and_styles(guest: Client) -> None:
    answer = guest.get("/")
    policy = answer["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe" not in policy
    body = answer.content.decode()
    assert " style=" not in body
    assert "<style" not in body
    assert " onclick=" not in body
    assert "<script>" not in body


def test_it_keeps_the_microphone_to_itself(guest: Client) -> None:
    assert "microphone=(self)" in guest.get("/")["Permissions-Policy"]


def test_it_signs_people_in_and_out(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "login"
    User.objects.create_user("paula", password="a long enough secret")
    refused = guest.post("/login", {"username": "paula", "password": "wrong"})
    assert b"do not go together" in refused.content
    answer = guest.post("/login?next=/", {"username": "paula", "password": "a long enough secret"})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert guest.get("/").status_code == 200
    assert guest.get("/logout").status_code == 405
    assert guest.post("/logout").status_code == 302
    assert guest.get("/").status_code == 302


def test_it_never_shows_a_key(person: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "login"
    assert b"sk-" not in person.get("/").content + person.get("/voice/config").content


def test_it_tells_a_guest_why_no_conversation_can_begin(guest: Client, settings: Settings) -> None:
    settings.GUEST_SESSIONS_PER_HOUR = 0
    seats.cache_clear()
    [*_, reason] = guest.get("/voice/config").json()["reasons"]
    assert reason["code"] == "guest_limit"
    assert "0 conversations an hour" in reason["message"]


def test_it_tells_a_person_without_an_account_whom_to_ask(person: Client) -> None:
    [*_, reason] = person.get("/voice/config").json()["reasons"]
    assert (reason["code"], "account" in reason["message"]) == ("not_allowed", True)


def test_it_says_how_each_model_is_reached(guest: Client, settings: Settings) -> None:
    with offered(settings, [*settings.VOICE_MODELS, UPSTREAM]):
        answer = guest.get("/voice/config")
    transports = {model["name"]: model["transports"] for model in answer.json()["models"]}
    assert transports == {"voice": ["webrtc", "websocket"], "upstream": ["webrtc"]}
    assert answer.json()["webrtc_path"] == "/voice/webrtc"
    assert b"their-secret" not in answer.content
    assert b"voice.example.org" not in answer.content


def test_it_gives_what_an_offer_must_be_sent_with(guest: Client) -> None:
    config = guest.get("/voice/config").json()
    assert len(config["csrf_token"]) > 30
    assert "csrftoken" in guest.cookies


def test_it_lends_a_relay_to_those_who_may_talk_for_as_long_as_they_may(guest: Client, settings: Settings) -> None:
    settings.GUEST_SESSION_S = 180
    settings.TURN_URLS = ["turn:turn.example.org:3478?transport=tcp"]
    settings.TURN_SECRET = "shared with the relay"
    [server] = guest.get("/voice/config").json()["ice_servers"]
    assert server["urls"] == settings.TURN_URLS
    expires_at = int(server["username"].split(":")[0])
    assert 180 <= expires_at - time.time() <= 180 + 120
    assert "shared" not in json.dumps(server)


def test_it_lends_no_relay_to_a_person_without_an_account(person: Client, settings: Settings) -> None:
    settings.TURN_URLS = ["turn:turn.example.org:3478?transport=tcp"]
    settings.TURN_SECRET = "shared with the relay"
    assert person.get("/voice/config").json()["ice_servers"] == []
