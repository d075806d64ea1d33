"""AsyncAPI's own parser accepts the description of the realtime events."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.clients.environments import run
from tests.realtime.product import Product


def test_its_own_parser_accepts_the_document(product: Product, tmp_path: Path) -> None:
    program = Path(shutil.copy(Path(__file__).with_name("asyncapi.mjs"), tmp_path))
    told = json.loads(run(program, "javascript", f"{product.origin}/asyncapi.json"))
    assert told["errors"] == []
    assert told["broken"]
