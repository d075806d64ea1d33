"""Pictures from a server with OpenAI's `/images/generations` and `/images/edits`."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from voiceapp.engines.image_interfaces import GeneratedImage, ImageRequest
from voiceapp.engines.interfaces import Provider
from voiceapp.engines.openai.client import RemoteServer
from voiceapp.engines.openai.forms import MultipartForm
from voiceapp.errors import EngineUnavailable

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
"""One picture of a good size as base64, several times over."""


class OpenAIImages(Provider):
    """A `Painter`; one per process and model."""

    def __init__(self, *, base_url: str, api_key: str, model: str, timeout_s: float) -> None:
        """`base_url` is what comes before `/images`; `model` is the name that the server knows, empty for its own
        choice."""
        self.base_url = base_url
        self._server = RemoteServer(
            title="server of images", settings="IMAGES", base_url=base_url, api_key=api_key, timeout_s=timeout_s
        )
        self._model = model

    async def paint(self, request: ImageRequest) -> GeneratedImage:
        """One image, in whichever of the two ways the server gives it: servers differ in whether they let one choose.

        Raises:
            EngineUnavailable: if the server cannot serve now.
            EngineTimeout: if the server takes too long.
            EngineRefused: if the server does not accept the request.
        """
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

    async def close(self) -> None:
        """Close the connections of the running event loop."""
        await self._server.close()

    def _fields(self, request: ImageRequest) -> dict[str, Any]:
        """What is asked for and nothing else: some servers refuse what they do not know."""
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
