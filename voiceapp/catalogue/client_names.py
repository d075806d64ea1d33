"""Names of models and voices that client programs have built in."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

CLIENT_NAMES: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
