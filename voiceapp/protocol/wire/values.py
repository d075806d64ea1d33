"""Reading one value of a client's settings: its type and its range, or a refusal that names the field."""

from __future__ import annotations

from typing import Any

from voiceapp.errors import InvalidParameter


def read_object(value: object, param: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidParameter(f"{param} must be an object.", param=param)
    return value


def read_text(value: object, param: str, *, limit: int) -> str:
    if not isinstance(value, str):
        raise InvalidParameter(f"{param} must be a string.", param=param)
    if len(value) > limit:
        raise InvalidParameter(f"{param} is longer than {limit} characters.", param=param)
    return value


MAX_METADATA = 16
"""Entries."""


def read_metadata(value: object, param: str) -> dict[str, str] | None:
    """Return the metadata that a client keeps with an object: names and short texts."""
    if value is None or value == {}:
        return None
    given = read_object(value, param)
    if len(given) > MAX_METADATA:
        raise InvalidParameter(f"{param} may have at most {MAX_METADATA} entries.", param=param)
    return {name: read_text(each, f"{param}.{name[:64]}", limit=512) for name, each in given.items()}


def read_boolean(value: object, param: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidParameter(f"{param} must be true or false.", param=param)
    return value


def read_number(value: object, param: str, low: float, high: float, *, below: bool = False) -> float:
    """A number from `low` to `high`; with `below`, `high` itself is out of range."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not low <= value <= high
        or (below and value == high)
    ):
        raise InvalidParameter(
            f"{param} must be a number from {low:g} {'below' if below else 'to'} {high:g}.", param=param
        )
    return float(value)


def read_integer(value: object, param: str, low: int, high: int) -> int:
    """A whole number from `low` to `high`; `800.0` is one too."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidParameter(f"{param} must be an integer from {low} to {high}.", param=param)
    return value
