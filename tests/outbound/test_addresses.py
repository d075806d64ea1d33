"""Which addresses may be called."""

from __future__ import annotations

import ipaddress

import pytest

from tests.outbound.test_client import LOOPBACK
from voiceapp.errors import InvalidParameter
from voiceapp.outbound.addresses import AddressNotAllowed, allows, check_receiver, check_url


async def test_a_name_is_looked_up_as_it_is_dialled() -> None:
    with pytest.raises(InvalidParameter, match=r"xn--n3h\.invalid is not known"):
        await check_receiver("http://☃.invalid/")


async def test_a_receiver_inside_is_refused_when_it_is_named() -> None:
    with pytest.raises(AddressNotAllowed):
        await check_receiver("http://localhost/hook")
    await check_receiver("http://localhost/hook", [*LOOPBACK, ipaddress.ip_network("::1/128")])
    with pytest.raises(InvalidParameter, match="not known"):
        await check_receiver("http://no-such-host.invalid/")


@pytest.mark.parametrize(
    "url",
    [
        "http://a b/",
        "http://h:0/",
        "http://h:99999/",
        "https://u:p@h/",
        "h",
        "",
        "//h/",
        "http://010.8.8.8/",
        "http://[2606:4700:4700::1111]x/",
        "http://a\u200bb.example/",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidParameter):
        check_url(url)


def test_an_address_may_have_its_length_and_no_more() -> None:
    check_url("https://example.org/" + "a" * 2000)
    with pytest.raises(InvalidParameter):
        check_url("https://example.org/" + "a" * 2100)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"])
def test_public_addresses_are_called(address: str) -> None:
    assert allows(address)


@pytest.mark.parametrize(
    "address", ["3fff::1", "5f00::1", "fec0::1", "192.88.99.1", "240.0.0.1", "2001:db8::1", "ff02::1"]
)
def test_addresses_that_only_look_public_are_not(address: str) -> None:
    assert not allows(address)


@pytest.mark.parametrize(
    "address", ["::ffff:0:127.0.0.1", "::1:2:3:4:5", "64:ff9b::7f00:1", "8000::1", "e000::1", "fe80::1%lo"]
)
def test_addresses_that_were_never_handed_out_are_not_called(address: str) -> None:
    assert not allows(address)
