"""Where a request came from, and which addresses are one caller."""

from __future__ import annotations

import pytest
from django.test import RequestFactory
from pytest_django import Settings

from voiceapp.accounts.addresses import address_of_request, address_of_scope, caller_address, neighbourhood


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "proxies", "expected"),
    [
        ("192.0.2.1", "", 0, "192.0.2.1"),
        ("192.0.2.1", "198.51.100.7", 0, "192.0.2.1"),
        ("10.0.0.1", "198.51.100.7", 1, "198.51.100.7"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.7", 1, "198.51.100.7"),
        ("10.0.0.1", "1.2.3.4, 198.51.100.7, 10.0.0.9", 2, "198.51.100.7"),
        ("10.0.0.1", "198.51.100.7", 2, "10.0.0.1"),
        ("10.0.0.1", "", 1, "10.0.0.1"),
        ("10.0.0.1", "<script>", 1, "10.0.0.1"),
        ("::ffff:192.0.2.1", "", 0, "192.0.2.1"),
        ("fe80::1%eth0", "", 0, "fe80::1"),
        ("10.0.0.1", "2001:DB8::1", 1, "2001:db8::1"),
        ("10.0.0.1", "198.51.100.7:5678", 1, "198.51.100.7"),
        ("10.0.0.1", "[2001:db8::1]:5678", 1, "2001:db8::1"),
        ("", "", 0, ""),
        ("unix:", "", 0, ""),
    ],
)
def test_it_believes_only_what_our_own_proxies_wrote(
    peer: str, forwarded_for: str, proxies: int, expected: str
) -> None:
    assert caller_address(peer, forwarded_for, proxies=proxies) == expected


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("::1", "::/64"),
        ("", ""),
        ("nonsense", ""),
    ],
)
def test_it_counts_an_ipv6_network_as_one_caller(address: str, expected: str) -> None:
    assert neighbourhood(address) == expected


@pytest.mark.parametrize(("trusted", "expected"), [(False, "10.0.0.1"), (True, "198.51.100.7")])
def test_it_reads_requests_and_connections_alike(settings: Settings, trusted: bool, expected: str) -> None:
    settings.TRUST_PROXY = trusted
    request = RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR="1.2.3.4, 198.51.100.7")
    scope = {
        "client": ("10.0.0.1", 5000),
        "headers": [(b"x-forwarded-for", b"1.2.3.4"), (b"x-forwarded-for", b"198.51.100.7")],
    }
    assert address_of_request(request) == address_of_scope(scope) == expected


def test_it_knows_no_address_of_a_unix_socket() -> None:
    assert address_of_scope({"client": None, "headers": []}) == ""
