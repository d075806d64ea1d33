"""Images that messages name by address, fetched here: no chat server calls an address for a caller."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import Any

from voiceapp.engines.image_files import form_of
from voiceapp.errors import InvalidParameter
from voiceapp.generation.calls import ChatCall
from voiceapp.outbound.client import Outbound
from voiceapp.tasks.inputs import allowed_networks

MAX_ADDRESSES = 16
MAX_BYTES = 5_000_000
"""Of all images of one request together."""
FETCH_S = 10.0


async def with_images(call: ChatCall) -> ChatCall:
    """Return the call with each address of an image replaced by the image.

    Raises:
        InvalidParameter: if there are too many, or one is no image.
        AddressNotAllowed: if one leads to a place that this server does not call.
        FetchFailed: if one does not come.
    """
    named = [part for message in call.request.messages for part in message.parts if _address(part)]
    if not named:
        return call
    if len(named) > MAX_ADDRESSES:
        raise InvalidParameter(f"{call.messages_at} name {len(named)} images; {MAX_ADDRESSES} are fetched at most.")
    messages, left = [], MAX_BYTES
    async with Outbound(allowed_networks=allowed_networks()) as outbound:
        for number, message in enumerate(call.request.messages):
            parts = []
            for part in message.parts:
                if address := _address(part):
                    image = await outbound.read(address, max_bytes=left, total_s=FETCH_S)
                    left -= len(image)
                    form = form_of(image[:12])
                    if form is None or form.family != "picture":
                        param = f"{call.place(number)}.content"
                        raise InvalidParameter(f"{param} names what is no PNG, JPEG or WebP image.", param=param)
                    encoded = (await asyncio.to_thread(base64.b64encode, image)).decode()
                    part = {**part, "image_url": {"url": f"data:{form.content_type};base64,{encoded}"}}
                parts.append(part)
            messages.append(replace(message, parts=tuple(parts)))
    return replace(call, request=replace(call.request, messages=tuple(messages)))


def _address(part: dict[str, Any]) -> str:
    url: str = part["image_url"]["url"] if part["type"] == "image_url" else ""
    return "" if url.startswith("data:") else url
