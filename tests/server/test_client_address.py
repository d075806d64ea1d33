"""Who is calling, with and without proxies."""

from __future__ import annotations

from typing import Any

import pytest

from voiceapp.server.client_address import client_address, forwarded_scheme


def scope(*forwarded: str, peer: str = "10.0.0.1", header: bytes = b"x-forwarded-for") -> dict[str, Any]:
    return {"client": (peer, 1234), "headers": [(header, value.encode()) for value in forwarded]}


@pytest.mark.parametrize(
    ("forwarded", "proxies", "address"),
    [
        (["203.0.113.7"], 0, "10.0.0.1"),
        (["203.0.113.7"], 1, "203.0.113.7"),
        (["6.6.6.6, 203.0.113.7"], 1, "203.0.113.7"),
        (["6.6.6.6", "203.0.113.7"], 1, "203.0.113.7"),
        (["6.6.6.6, 203.0.113.7, 10.0.0.9"], 2, "203.0.113.7"),
        (["203.0.113.7"], 2, "10.0.0.1"),
        ([], 1, "10.0.0.1"),
        (["<script>"], 1, "10.0.0.1"),
        ([""], 1, "10.0.0.1"),
        (["203.0.113.7:5678"], 1, "203.0.113.7"),
        (["[2001:db8::1]:5678"], 1, "2001:db8::1"),
        (["2001:DB8::1"], 1, "2001:db8::1"),
        (["::ffff:203.0.113.7"], 1, "203.0.113.7"),
    ],
)
def test_it_counts_from_the_right(forwarded: list[str], proxies: int, address: str) -> None:
    assert client_address(scope(*forwarded), proxies) == address


@pytest.mark.parametrize(("peer", "address"), [("::ffff:192.0.2.1", "192.0.2.1"), ("unix:", "unix:")])
def test_it_unmaps_the_peer_of_a_dual_stack_socket(peer: str, address: str) -> None:
    assert client_address(scope(peer=peer), 0) == address


def test_it_knows_nobody_without_a_peer() -> None:
    assert client_address({"client": None, "headers": []}, 0) is None


@pytest.mark.parametrize(
    ("values", "proxies", "scheme"),
    [
        (["https"], 1, "https"),
        (["https", "http"], 1, "http"),
        (["https, http"], 1, "http"),
        (["http, HTTPS"], 1, "https"),
        (["http, https, http"], 2, "https"),
        (["https, http", "http"], 2, "http"),
        (["https"], 2, "https"),
        (["https"], 0, None),
        (["https,"], 1, None),
        (["ftp"], 1, None),
        ([], 1, None),
    ],
)
def test_it_takes_the_scheme_that_the_outermost_trusted_proxy_saw(
    values: list[str], proxies: int, scheme: str | None
) -> None:
    assert forwarded_scheme(scope(*values, header=b"x-forwarded-proto"), proxies) == scheme
