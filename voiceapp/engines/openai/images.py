"""Pictures from a server with OpenAI's `/images/generations` and `/images/edits`."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from voiceapp.engines.openai.client import Server
from voiceapp.engines.openai.forms import Form
from voiceapp.engines.picture_interfaces import Painted, PictureWish
from voiceapp.errors import EngineUnavailable

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""One picture of a good size as base64, several times over."""


class OpenAIImages:
    """A `Painter`; one per process and model."""

    def __init__(self, *, base_url: str, api_key: str, model: str, timeout_s: float) -> None:
        """`base_url` is what comes before `/images`; `model` is the name that the server knows, empty for its own
        choice."""
        self.base_url = base_url
        self._server = Server(
            title="server of images", settings="IMAGES", base_url=base_url, api_key=api_key, timeout_s=timeout_s
        )
        self._model = model

    async def paint(self, wish: PictureWish) -> Painted:
        """One picture, in whichever of the two ways the server gives it: servers differ in whether they let one choose.

        Raises EngineUnavailable, EngineTimeout or EngineRefused.
        """
        if wish.sources:
            form = Form(self._fields(wish))
            for source in wish.sources:
                form.add_file("image[]" if len(wish.sources) > 1 else "image", source)
            if wish.mask is not None:
                form.add_file("mask", wish.mask)
            answer = await self._server.ask(
                "/images/edits", form.body(), limit=MAX_ANSWER_BYTES, content_type=form.content_type
            )
        else:
            answer = await self._server.ask("/images/generations", self._fields(wish), limit=MAX_ANSWER_BYTES)
        return _painted(answer)

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._server.close()

    def _fields(self, wish: PictureWish) -> dict[str, Any]:
        """What is asked for and nothing else: some servers refuse what they do not know."""
        wished: dict[str, Any] = {
            "model": self._model,
            "size": wish.size,
            "negative_prompt": wish.negative_prompt,
            "seed": wish.seed,
        }
        return {"prompt": wish.prompt, "n": 1} | {
            name: value for name, value in wished.items() if value not in ("", None)
        }


def _painted(answer: Any) -> Painted:
    """Raises EngineUnavailable: there is no picture in the answer."""
    try:
        item = answer["data"][0]
        if item.get("b64_json"):
            return Painted(content=base64.b64decode(item["b64_json"], validate=True))
        return Painted(url=str(item["url"]))
    except (LookupError, TypeError, AttributeError, binascii.Error) as error:
        raise EngineUnavailable("The server of images answered without a picture.") from error
