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
from pytest_django.fixtures import Settings

from voiceapp.accounts.guests import guest_of
from voiceapp.accounts.limits import session_limits
from voiceapp.engines.catalogue import catalogue

pytestmark = pytest.mark.django_db


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
    assert person.get("/").status_code == 404
    assert person.get("/voice/config").status_code == 404


def test_guessing_a_password_ends_after_five_attempts(person: Client) -> None:
    guesser = Client()
    for _ in range(5):
        refused = guesser.post("/login", {"username": "paula", "password": "a guess"})
        assert "do not go together" in refused.content.decode()
    refused = guesser.post("/login", {"username": "paula", "password": "a long enough secret"})
    assert refused.status_code == 200
    assert "Wait 15 minutes" in refused.content.decode()


def test_the_login_leads_to_no_other_site(person: Client) -> None:
    for elsewhere in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        signed_in = Client().post(
            "/login", {"username": "paula", "password": "a long enough secret", "next": elsewhere}
        )
        assert (signed_in.status_code, signed_in["Location"]) == (302, "/"), elsewhere


def test_it_sends_strangers_to_the_login(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "login"
    answer = guest.get("/")
    assert answer.status_code == 302
    assert answer["Location"] == "/login?next=/"


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


def test_it_knows_a_guest_again_by_a_cookie(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    settings.GUEST_SESSION_S = 180
    assert guest.get("/").status_code == 200
    config = guest.get("/voice/config").json()
    assert (config["signed_in"], config["guest"], config["session_limit_s"]) == (False, True, 180)
    name = guest_of(cookies_of(guest))
    guest.get("/voice/config")
    assert guest_of(cookies_of(guest)) == name != ""


def test_a_guest_who_is_told_to_sign_in_finds_where(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    page = guest.get("/").content.decode()
    assert re.search(r'<a class="quiet" id="sign-in" href="/login">.*<span>Sign in</span></a>', page)


def test_it_takes_no_cookie_that_somebody_made_up(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    assert guest_of({}) == guest_of({"guest": "made-up"}) == guest_of({"guest": "made-up:1x:2y"}) == ""
    guest.cookies["guest"] = "made-up:1x:2y"
    guest.get("/voice/config")
    assert guest_of(cookies_of(guest)) not in ("", "made-up")


def test_a_guest_who_only_looks_leaves_no_row(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    guest.get("/")
    guest.get("/voice/config")
    assert not Session.objects.exists()


def test_the_cookie_of_a_guest_is_not_for_scripts_or_other_sites(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE, settings.SESSION_COOKIE_SECURE = "guest", True
    guest.get("/voice/config")
    cookie = guest.cookies["guest"]
    assert (cookie["httponly"], cookie["secure"], cookie["samesite"]) == (True, True, "Lax")
    assert cookie["max-age"] == settings.SESSION_COOKIE_AGE


def test_it_names_models_voices_and_the_socket(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    config = guest.get("/voice/config").json()
    assert {"name": "voice", "title": "Voice assistant"}.items() <= config["models"][0].items()
    assert config["default_model"] == "voice"
    assert config["default_voice"] in [voice["name"] for voice in config["voices"]]
    assert {"name", "title", "language"} == set(config["voices"][0])
    assert config["socket_path"] == "/voice/socket"
    assert config["ready"] is (config["reasons"] == [])


def test_it_says_which_command_brings_the_models(guest: Client, settings: Settings, tmp_path: Path) -> None:
    settings.PUBLIC_PAGE = "guest"
    settings.MODELS_DIR = tmp_path
    config = guest.get("/voice/config").json()
    if config["ready"]:  # this process has seen them complete already, and does not look again
        assert config["reasons"] == []
        return
    assert "fetch_models" in " ".join(reason["message"] for reason in config["reasons"])


def test_it_forbids_inline_scripts_and_styles(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
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


def test_it_keeps_the_microphone_to_itself(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
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
    settings.PUBLIC_PAGE = "guest"
    settings.GUEST_SESSIONS_PER_HOUR = 0
    session_limits.cache_clear()
    [*_, reason] = guest.get("/voice/config").json()["reasons"]
    assert reason["code"] == "at_capacity"
    assert "0 conversations an hour" in reason["message"]


def test_it_tells_a_person_without_an_account_whom_to_ask(person: Client) -> None:
    [*_, reason] = person.get("/voice/config").json()["reasons"]
    assert (reason["code"], "account" in reason["message"]) == ("not_allowed", True)


def test_it_says_how_each_model_is_reached(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    upstream = {
        "name": "upstream",
        "kind": "realtime",
        "provider": "voiceapp.engines.upstream.media.RelayedRealtime",
        "options": {"base_url": "https://voice.example.org", "api_key": "their-secret", "model": "theirs"},
    }
    settings.VOICE_MODELS = [*settings.VOICE_MODELS, upstream]
    catalogue.cache_clear()
    try:
        answer = guest.get("/voice/config")
    finally:
        catalogue.cache_clear()
    transports = {model["name"]: model["transports"] for model in answer.json()["models"]}
    assert transports == {"voice": ["webrtc", "websocket"], "upstream": ["webrtc"]}
    assert answer.json()["webrtc_path"] == "/voice/webrtc"
    assert b"their-secret" not in answer.content
    assert b"voice.example.org" not in answer.content


def test_it_gives_what_an_offer_must_be_sent_with(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    config = guest.get("/voice/config").json()
    assert len(config["csrf_token"]) > 30
    assert "csrftoken" in guest.cookies


def test_it_lends_a_relay_to_those_who_may_talk_for_as_long_as_they_may(guest: Client, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
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
