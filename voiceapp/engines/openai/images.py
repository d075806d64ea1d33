"""Pictures from a server with OpenAI's `/images/generations` and `/images/edits`."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from voiceapp.engines.image_interfaces import GeneratedImage, ImageRequest
from voiceapp.engines.openai.client import ServerProvider
from voiceapp.engines.openai.forms import MultipartForm
from voiceapp.errors import EngineUnavailable

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""One picture of a good size as base64, several times over."""


class OpenAIImages(ServerProvider):
    """An `ImageGenerator`; one per process and model."""

    title = "server of images"
    settings = "IMAGES"
    any_model = ""

    def __init__(self, *, base_url: str, **about: Any) -> None:
        super().__init__(base_url=base_url, **about)
        self.base_url = base_url

    async def paint(self, request: ImageRequest) -> GeneratedImage:
        """Return one image, sent as base64 or by address: not every server lets clients choose."""
        if request.sources:
            form = MultipartForm(self._fields(request))
            for source in request.sources:
                form.add_file("image[]" if len(request.sources) > 1 else "image", source)
            if request.mask is not None:
                form.add_file("mask", request.mask)
            found = await self._server.ask(
                "/images/edits", form.body(), limit=MAX_RESPONSE_BYTES, content_type=form.content_type
            )
        else:
            found = await self._server.ask("/images/generations", self._fields(request), limit=MAX_RESPONSE_BYTES)
        return _painted(found)

    def _fields(self, request: ImageRequest) -> dict[str, Any]:
        """Return the fields that are asked for and nothing else: some servers refuse what they do not know."""
        options: dict[str, Any] = {
            "model": self._model,
            "size": request.size,
            "negative_prompt": request.negative_prompt,
            "seed": request.seed,
        }
        return {"prompt": request.prompt, "n": 1} | {
            name: value for name, value in options.items() if value not in ("", None)
        }


def _painted(found: Any) -> GeneratedImage:
    """The image of a response.

    Raises:
        EngineUnavailable: if there is none in it.
    """
    try:
        item = found["data"][0]
        if item.get("b64_json"):
            return GeneratedImage(content=base64.b64decode(item["b64_json"], validate=True))
        return GeneratedImage(url=str(item["url"]))
    except (LookupError, TypeError, AttributeError, binascii.Error) as error:
        raise EngineUnavailable("The server of images sent no picture.") from error
