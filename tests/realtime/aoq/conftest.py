"""A running server with a relay."""

from __future__ import annotations

import pytest

from tests.ports import free_udp_port
from tests.realtime.conftest import Serve
from tests.realtime.product import Product


@pytest.fixture(scope="module")
def product(serve: Serve) -> Product:
    return serve(AOQ_PORT=str(free_udp_port()))
