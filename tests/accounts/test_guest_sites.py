"""Other sites whose visitors may talk: which origins are accepted, and what their guests are held to."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.test import AsyncClient
from pytest_django.fixtures import Settings

from tests.conftest import Member
from voiceapp.accounts.guests import guest_of_site, site_token
from voiceapp.accounts.models import Account, GuestSite
from voiceapp.accounts.page import SignInRequired, page_caller_of, site_caller
from voiceapp.accounts.seats import Seats
from voiceapp.errors import AccessDenied, NotFound, Throttled

ORIGIN = "https://shop.example.org"


async def site_of(origin: str = ORIGIN, **limits: int) -> GuestSite:
    site = GuestSite(origin=origin, **limits)
    await site.asave()
    return site


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("https://Shop.Example.org/", ORIGIN),
        (" https://shop.example.org:443 ", ORIGIN),
        ("http://localhost:8080", "http://localhost:8080"),
    ],
)
@pytest.mark.django_db
def test_an_origin_is_kept_as_browsers_write_it(written: str, kept: str) -> None:
    site = GuestSite(origin=written)
    site.clean()
    assert site.origin == kept


@pytest.mark.parametrize(
    "written",
    [
        *("shop.example.org", "https://shop.example.org/path", "https://*.example.org", "https://a@b.org", "null", ""),
        *("https://shop.example.org?x", "ftp://shop.example.org", "https://x.org:99999", "https://x.org; script-src *"),
    ],
)
@pytest.mark.django_db
def test_nothing_else_is_accepted_as_an_origin(written: str) -> None:
    with pytest.raises(ValidationError, match="scheme and host"):
        GuestSite(origin=written).clean()


async def test_a_guest_of_a_site_has_its_account_and_limits(db: None, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "login"
    site = await site_of(sessions_at_once=1, sessions_per_hour=2, session_s=77)
    caller = await site_caller(site_token(site.pk))
    assert caller.is_guest
    assert (caller.account_id, str(site.account)) == (site.account_id, f"Guests of {ORIGIN}")
    other = await site_caller(site_token((await site_of("https://other.example.org")).pk))
    settings.GUEST_SESSIONS_PER_HOUR = settings.GUEST_SESSION_S = 1
    seats = Seats()
    assert seats.lifetime_s(caller) == 77
    give_back = await seats.take(caller, "192.0.2.1")
    with pytest.raises(Throttled, match="Too many guests"):
        await seats.take(caller, "192.0.2.2")
    await seats.take(other, "192.0.2.1")  # each site has its own
    give_back()
    (await seats.take(caller, "192.0.2.1"))()
    with pytest.raises(Throttled, match="2 conversations an hour"):
        await seats.take(caller, "192.0.2.1")


async def test_a_forged_token_a_deleted_site_and_one_that_is_off_are_refused(db: None, settings: Settings) -> None:
    site = await site_of()
    token = site_token(site.pk)
    assert guest_of_site(token) is not None
    for forged in ("", "1.x", token[:-1], token.replace(".", ",", 1), f"{site.pk}.x:1:2"):
        with pytest.raises(SignInRequired):
            await site_caller(forged)
    await Account.objects.filter(pk=site.account_id).aupdate(is_active=False)
    with pytest.raises(AccessDenied, match="at present"):
        await site_caller(token)
    await site.adelete()
    with pytest.raises(AccessDenied, match="any more"):
        await site_caller(token)
    settings.PUBLIC_PAGE = "off"
    with pytest.raises(NotFound):
        await site_caller(token)


async def test_a_site_never_takes_the_account_of_another(db: None) -> None:
    site = await site_of()
    assert str(site.account) == f"Guests of {ORIGIN}"
    site.origin = "https://moved.example.org"
    await site.asave()
    ordinary = await Account.objects.acreate(name="Guests of https://third.example.org")
    again, third = await site_of(), await site_of("https://third.example.org")
    assert len({site.account_id, ordinary.pk, again.account_id, third.account_id}) == 4
    assert str(again.account) == f"Guests of {ORIGIN} 2"


async def test_a_login_does_not_count_within_another_site(alice: Member, settings: Settings) -> None:
    settings.PUBLIC_PAGE = "guest"
    site = await site_of()
    scope = {
        "user": alice.user,
        "cookies": {},
        "query_string": f"model=voice&site_token={site_token(site.pk)}".encode(),
    }
    assert (await page_caller_of(scope)).account_id == site.account_id
    assert (await page_caller_of({**scope, "query_string": b"model=voice"})).account_id == alice.account.pk


@pytest.mark.django_db(transaction=True)
async def test_the_page_within_a_site_is_framed_by_its_origin_alone(async_client: AsyncClient) -> None:
    await site_of()
    framed = await async_client.get(f"/embed?site={ORIGIN}")
    assert f"frame-ancestors {ORIGIN};" in framed["Content-Security-Policy"] + ";"
    assert "X-Frame-Options" not in framed
    assert "guest" not in framed.cookies
    for other in ("https://evil.example.org", "", f"{ORIGIN}.evil.example.org", ORIGIN.upper()):
        refused = await async_client.get("/embed", {"site": other})
        assert refused.status_code == 403
        assert "frame-ancestors 'none'" in refused["Content-Security-Policy"]
    whole = await async_client.get("/")
    assert whole["X-Frame-Options"] == "DENY"
    assert "frame-ancestors 'none'" in whole["Content-Security-Policy"]
    for token in ("forged", ""):
        assert (await async_client.get("/voice/config", {"site_token": token})).status_code == 403
