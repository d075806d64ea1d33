"""Building blocks of the bodies of every HTTP operation.

Values are taken strictly (a string is no number, `true` is no 1) and what a body holds beyond its schema is ignored, as
the service that clients are written for does: one framework sends a parameter called `kwargs`.
"""

from __future__ import annotations

import json
import math
import re
from typing import Annotated, Any, Literal, NoReturn

from pydantic import AfterValidator, BaseModel, ConfigDict

UNWRITABLE = re.compile("[\x00\ud800-\udfff]")
"""NUL, which PostgreSQL does not store, and halves of surrogate pairs, which are no text."""


def clean(text: str) -> str:
    """The text itself.

    Raises:
        ValueError: if it holds what is UNWRITABLE.
    """
    if UNWRITABLE.search(text):
        raise ValueError("the text holds a NUL character or half of a surrogate pair")
    return text


def is_clean(value: Any) -> bool:
    """Return whether parsed JSON holds no key and no text that is UNWRITABLE, at any depth."""
    if isinstance(value, str):
        return UNWRITABLE.search(value) is None
    if isinstance(value, dict):
        return all(is_clean(key) and is_clean(item) for key, item in value.items())
    return all(map(is_clean, value)) if isinstance(value, list) else True


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text. What it holds can be stored, sent on and reckoned with: no number is beyond a double.

    Raises:
        ValueError: if it is not JSON, or a number is none of JSON's or out of range.
        RecursionError: if it is nested too deep.
    """
    return json.loads(text, parse_constant=_no_such_number, parse_float=_finite, parse_int=_whole)


def _no_such_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError("a number is out of range")
    return number


def _whole(digits: str) -> int:
    if len(digits) > 300:  # the largest double has 309
        _finite(digits)
    return int(digits)


CleanStr = Annotated[str, AfterValidator(clean)]
"""Text that can be stored and sent on. JSON bodies hold nothing else (`voiceapp.api` reads them so); paths, queries and
forms may."""


class Schema(BaseModel):
    """Base of every body, asked and answered."""

    model_config = ConfigDict(strict=True, extra="ignore", allow_inf_nan=False, use_attribute_docstrings=True)


class Failure(Schema):
    """An error."""

    code: str
    """Code for programs: `InvalidParameter`, `Throttling.RateQuota`, …"""
    message: str
    """The same for people, in one sentence."""
    request_id: str
    """Also in the header `X-Request-ID`; the server's log names it."""


class AgentError(Schema):
    """The inner object of the error shape at the roots of agents."""

    code: str
    """Code for programs."""
    message: str
    """The same for people, in one sentence."""


class AgentFailure(Schema):
    """An error, as clients of the agents' interface read it."""

    type: Literal["error"] = "error"
    error: AgentError
    request_id: str


class CompatibleError(Schema):
    """The inner object of the OpenAI-compatible error shape."""

    message: str
    type: str
    code: str
    param: str | None = None
    """Dotted path of the offending field, where one is to blame."""


class CompatibleFailure(Schema):
    """An error, as clients of OpenAI's interface read it."""

    error: CompatibleError
    request_id: str


class FlatFailure(Failure):
    """Both readings at once: clients of the flat rerank root expect either."""

    error: CompatibleError
