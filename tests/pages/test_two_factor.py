"""A second factor: who has set it up signs in with password and code, and in no other way."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pyotp
import pytest
from asgiref.sync import sync_to_async
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core import signing
from django.core.management import CommandError, call_command
from django.core.signing import TimestampSigner, b62_encode
from django.test import AsyncClient, Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from pytest_django.fixtures import Settings

from tests.conftest import Member
from tests.web import words_of
from voiceapp.accounts.models import SecondFactor
from voiceapp.accounts.second_factor import MOST_TYPED
from voiceapp.pages.login import PROOF, PROOF_S
from voiceapp.server.housekeeping import tidy

PAGE, LOGIN = "/two-factor", "/login"
PASSWORD = {"username": "alice", "password": "alice-password"}


def code_of(secret: str, steps: int = 0) -> str:
    """Return the code of now, or of a later step: only the next one is accepted, and each once."""
    return pyotp.TOTP(secret).at(time.time(), counter_offset=steps)


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def proof_of(client: Client) -> str:
    """Enter the right password, and return the proof of it that the form for the code has."""
    answer = client.post(LOGIN, {**PASSWORD, "next": "/admin/"})
    assert not is_signed_in(client)
    page = answer.content.decode()
    assert 'autocomplete="one-time-code"' in page
    assert 'name="password"' not in page
    assert 'role="alert"' not in page
    return str(answer.context["form"].proof)


def set_up(member: Member) -> tuple[str, list[str]]:
    """Return the secret and the recovery codes."""
    client = Client()
    client.force_login(member.user)
    page = client.get(PAGE).content.decode()
    secret = re.search(r'id="secret">([A-Z2-7]{32})<', page)
    assert secret is not None
    assert "style=" not in page
    refused = client.post(PAGE, {"code": "000000"}).content.decode()
    assert "That code is wrong" in refused
    assert 'aria-describedby="error"' in refused
    assert secret[1] in refused, "what was scanned stays good"
    code = code_of(secret[1])
    client.post(PAGE, {"code": f"{' ' * MOST_TYPED}{code}"})
    assert not SecondFactor.objects.exists(), "what is read of a code has no bound"
    done = client.post(PAGE, {"code": f" {code[:3]} {code[3:]}"})
    codes = re.findall(r"<code>([\d-]{24})</code>", done.content.decode())
    assert len(set(codes)) == 8
    assert "no-store" in done["Cache-Control"]
    for page in (done, client.get(PAGE), client.post(PAGE, {"code": "1"})):
        assert secret[1] not in page.content.decode()
    assert codes[0] not in page.content.decode()
    return secret[1], codes


@pytest.fixture
def factor(alice: Member) -> tuple[str, list[str]]:
    return set_up(alice)


def addresses(patterns: list[URLPattern | URLResolver], before: str = "/") -> Iterator[str]:
    """Return every address of this server that takes no parameters."""
    for pattern in patterns:
        route = str(pattern.pattern).removeprefix("^").removesuffix("$").removesuffix("\\Z")
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, before + route)
        elif not set(route) & set("<(\\"):
            yield before + route


@pytest.mark.parametrize("has_factor", [False, True])
async def test_no_door_lets_people_in_with_their_password_alone(alice: Member, has_factor: bool) -> None:
    await User.objects.aupdate(is_staff=True)
    secret, _ = await sync_to_async(set_up)(alice) if has_factor else ("", [])
    doors = [*addresses(get_resolver().url_patterns), f"{LOGIN}?next=/admin/"]
    assert {LOGIN, reverse("admin:login"), reverse("admin:index"), "/api/v1/tasks"} <= set(doors)
    opened = []
    for door in doors:
        client = AsyncClient()
        for sent in (PASSWORD, {**PASSWORD, "code": "", "proof": ""}):
            await client.post(door, {**sent, "next": "/admin/"})
        if await (await client.asession()).aget("_auth_user_id"):
            opened.append(door)
    assert opened == ([] if has_factor else [LOGIN, f"{LOGIN}?next=/admin/"])
    if has_factor:
        client = AsyncClient()
        asked = await client.post(LOGIN, PASSWORD)
        await client.post(LOGIN, {"proof": asked.context["form"].proof, "code": code_of(secret, 1)})
        assert await (await client.asession()).aget("_auth_user_id")


def test_a_code_counts_once(factor: tuple[str, list[str]], caplog: pytest.LogCaptureFixture) -> None:
    secret, recovery = factor
    first = Client()
    sent = {"proof": proof_of(first), "code": code_of(secret, 1), "next": "/admin/"}
    anonymous = first.session.session_key
    assert first.post(LOGIN, sent)["Location"] == "/admin/"
    assert first.session.session_key != anonymous
    second = Client()
    refused = second.post(LOGIN, {"proof": proof_of(second), "code": sent["code"]})
    assert "used already" in words_of(refused.content.decode())
    assert 'name="proof"' in refused.content.decode(), "another code may follow"
    before = pyotp.TOTP(secret).generate_otp(SecondFactor.objects.get().last_step - 1)
    second.post(LOGIN, {"proof": proof_of(second), "code": before})
    assert not is_signed_in(second), "one before it counts no more"
    for code, expected in ((recovery[3].replace("-", ""), True), (recovery[3], False), (recovery[4], True)):
        client = Client()
        client.post(LOGIN, {"proof": proof_of(client), "code": code})
        assert is_signed_in(client) == expected
    notes = [entry.get_change_message() for entry in LogEntry.objects.order_by("pk")]
    assert notes[1:] == [
        "Set up two-factor authentication.",
        "Signed in from 127.0.0.1.",
        *["Refused to sign in from 127.0.0.1."] * 2,
        *("Used a recovery code; 7 are left.", "Signed in from 127.0.0.1.", "Refused to sign in from 127.0.0.1."),
        *("Used a recovery code; 6 are left.", "Signed in from 127.0.0.1."),
    ]
    row = SecondFactor.objects.get()
    kept = f"{notes} {caplog.text} {row.sealed_secret} {row.recovery_digests}"
    assert not [secret for secret in (secret, sent["code"], *recovery) if secret in kept]


def test_guesses_are_throttled_from_wherever_they_come(factor: tuple[str, list[str]], bob: Member) -> None:
    secret, _ = factor
    client = Client()
    for number in range(5):
        proof = proof_of(client)  # the right password forgives nothing
        client.post(LOGIN, {"proof": proof, "code": f"{number}"}, REMOTE_ADDR=f"192.0.2.{number}")
    late = client.post(LOGIN, {"proof": proof, "code": code_of(secret, 1)}, REMOTE_ADDR="192.0.2.9")
    assert "Too many failed attempts" in late.content.decode()
    client.post(LOGIN, {"username": "bob", "password": "bob-password"})
    assert is_signed_in(client)


class Earlier(TimestampSigner):
    def timestamp(self) -> str:
        return b62_encode(int(time.time()) - PROOF_S - 1)


@pytest.mark.parametrize("forged", ["old", "unsigned", "of a person who left", "of another purpose"])
def test_a_code_alone_is_not_enough(factor: tuple[str, list[str]], alice: Member, forged: str) -> None:
    secret, _ = factor
    proof = {
        "old": Earlier(salt=PROOF).sign_object(alice.user.pk),
        "unsigned": str(alice.user.pk),
        "of a person who left": signing.dumps(alice.user.pk, salt=PROOF),
        "of another purpose": signing.dumps(alice.user.pk, salt="another"),
    }[forged]
    User.objects.update(is_active=forged != "of a person who left")
    client = Client()
    answer = client.post(LOGIN, {"proof": proof, "code": code_of(secret, 1)})
    assert not is_signed_in(client)
    assert "That took too long" in answer.content.decode()
    assert 'name="password"' in answer.content.decode()
    User.objects.update(is_active=True)
    client.post(LOGIN, {"proof": signing.dumps(alice.user.pk, salt=PROOF), "code": code_of(secret, 1)})
    assert is_signed_in(client)


def test_it_is_turned_off_with_the_password(factor: tuple[str, list[str]], alice: Member) -> None:
    client = Client()
    client.force_login(alice.user)
    for _ in range(4):
        assert "not your password" in client.post(PAGE, {"password": "wrong"}).content.decode()
    assert client.post(PAGE, {"password": "alice-password"}).status_code == 302
    for _ in range(5):
        SecondFactor.objects.create(user=alice.user, sealed_secret="", last_step=0, recovery_digests=[])
        client.post(PAGE, {"password": "wrong"})
        SecondFactor.objects.all().delete()
    SecondFactor.objects.create(user=alice.user, sealed_secret="", last_step=0, recovery_digests=[])
    assert "Too many failed attempts" in client.post(PAGE, {"password": "alice-password"}).content.decode()
    note = LogEntry.objects.latest("pk")
    assert (note.user, note.get_change_message()) == (alice.user, "Removed two-factor authentication.")


def test_it_is_for_those_with_a_password_and_leads_where_pages_are(alice: Member, settings: Settings) -> None:
    client = Client()
    assert client.get(PAGE)["Location"] == f"{LOGIN}?next={PAGE}"
    client.force_login(alice.user)
    assert PAGE in client.get("/").content.decode()
    settings.PUBLIC_PAGE = "off"  # the admin alone is served, and needs both
    assert 'href="/' not in client.get(PAGE).content.decode().partition("<body")[2]
    assert 'href="/' not in Client().get(LOGIN).content.decode().partition("<body")[2]
    settings.PUBLIC_PAGE = "guest"
    assert 'href="/"' in client.get(PAGE).content.decode()
    assert 'href="/privacy"' in Client().get(LOGIN).content.decode()
    alice.user.set_unusable_password()
    alice.user.save()
    client.force_login(alice.user)
    assert client.get(PAGE).status_code == 404
    assert PAGE not in client.get("/").content.decode()


def test_superusers_and_the_command_line_remove_a_lost_one(alice: Member, bob: Member, desk: Client) -> None:
    people, sent = reverse("admin:auth_user_changelist"), {"_selected_action": [alice.user.pk, bob.user.pk]}
    set_up(alice)
    bob.user.is_staff = True
    bob.user.save()
    bob.user.user_permissions.set(Permission.objects.all())
    member = Client()
    member.force_login(bob.user)
    member.post(people, {**sent, "action": "remove_second_factor"})
    assert SecondFactor.objects.exists()
    assert (
        "1 of these people"
        in desk.post(people, {**sent, "action": "remove_second_factor"}, follow=True).content.decode()
    )
    assert not SecondFactor.objects.exists()
    note = LogEntry.objects.latest("pk")
    assert (note.user.username, note.object_repr) == ("operator", "alice")
    assert note.get_change_message() == "Removed two-factor authentication."

    set_up(alice)
    for name, wrong in (("nobody", "There is no login"), ("bob", "has no second factor")):
        with pytest.raises(CommandError, match=wrong):
            call_command("removesecondfactor", name)
    call_command("removesecondfactor", "alice")
    assert (
        LogEntry.objects.latest("pk").get_change_message() == "Removed two-factor authentication on the command line."
    )
    client = Client()
    client.post(LOGIN, PASSWORD)
    assert is_signed_in(client)


def test_secrets_are_sealed_anew_and_a_lost_one_leaves_recovery_codes(
    factor: tuple[str, list[str]], settings: Settings
) -> None:
    secret, recovery = factor
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "b" * 50, [settings.SECRET_KEY]
    tidy()
    settings.SECRET_KEY_FALLBACKS = []
    client = Client()
    client.post(LOGIN, {"proof": proof_of(client), "code": code_of(secret, 1)})
    assert is_signed_in(client)
    settings.SECRET_KEY = "c" * 50
    client = Client()
    proof = proof_of(client)
    assert client.post(LOGIN, {"proof": proof, "code": code_of(secret, 1)}).status_code == 200
    assert not is_signed_in(client)
    client.post(LOGIN, {"proof": proof, "code": recovery[0]})
    assert is_signed_in(client)
