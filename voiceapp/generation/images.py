"""Images that messages name by address, fetched here: no chat server calls an address for a caller."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import Any

from voiceapp.engines.image_files import form_of
from voiceapp.errors import InvalidParameter
from voiceapp.generation.calls import ChatCall
from voiceapp.outbound.client import Outbound, ResponseTooLarge
from voiceapp.tasks.storage.inputs import allowed_networks

MAX_ADDRESSES = 16
MAX_BYTES = 5_000_000
"""Limit of all images of one request together."""
FETCH_S = 10.0
"""Time within which all of them must be there."""
AT_ONCE = 4


async def with_images(call: ChatCall) -> ChatCall:
    """Return the call with each address of an image replaced by the image.

    Raises:
        InvalidParameter: if there are too many, or one is no image.
        AddressNotAllowed: if one leads to a place that this server does not call.
        FetchFailed: if one does not come.
    """
    named = [
        (address, f"{call.place(number)}.content")
        for number, message in enumerate(call.request.messages)
        for part in message.parts
        if (address := _address(part))
    ]
    if not named:
        return call
    if len(named) > MAX_ADDRESSES:
        raise InvalidParameter(f"{call.messages_at} name {len(named)} images; {MAX_ADDRESSES} are fetched at most.")
    left = MAX_BYTES

    async def fetch(address: str, param: str) -> dict[str, str]:
        nonlocal left
        image = await outbound.read(address, max_bytes=MAX_BYTES, total_s=FETCH_S)
        left -= len(image)
        if left < 0:
            raise ResponseTooLarge(f"The images are larger than {MAX_BYTES / 1_000_000:g} MB together.")
        form = form_of(image[:12])
        if form is None or form.family != "picture":
            raise InvalidParameter(f"{param} names what is no PNG, JPEG or WebP image.", param=param)
        encoded = (await asyncio.to_thread(base64.b64encode, image)).decode()
        return {"url": f"data:{form.content_type};base64,{encoded}"}

    try:
        async with (
            Outbound(allowed_networks=allowed_networks(), limit=AT_ONCE) as outbound,
            asyncio.TaskGroup() as tasks,
        ):
            fetching = [tasks.create_task(fetch(*image), name="image of a chat") for image in named]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    images = (fetched.result() for fetched in fetching)
    messages = [
        replace(
            message,
            parts=tuple({**part, "image_url": next(images)} if _address(part) else part for part in message.parts),
        )
        for message in call.request.messages
    ]
    return replace(call, request=replace(call.request, messages=tuple(messages)))


def _address(part: dict[str, Any]) -> str:
    url: str = part["image_url"]["url"] if part["type"] == "image_url" else ""
    return "" if url.startswith("data:") else url
