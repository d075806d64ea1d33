"""Where a request came from, and which addresses are one caller."""

from __future__ import annotations

import pytest
from django.test import RequestFactory

from voiceapp.accounts.addresses import address_of_request, address_of_scope, neighbourhood


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("2001:DB8::1", "2001:db8::1"),
        ("", ""),
        ("unix:", ""),
    ],
)
def test_it_reads_requests_and_connections_alike(client: str, expected: str) -> None:
    request = RequestFactory().get("/", REMOTE_ADDR=client)
    assert address_of_request(request) == address_of_scope({"client": (client, 5000)}) == expected


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


def test_it_knows_no_address_of_a_unix_socket() -> None:
    assert address_of_scope({"client": None}) == ""
