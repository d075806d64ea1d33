"""Django's ASGI handler, without the two threads that it starts for every request."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.core.signals import request_finished
from django.http import HttpResponseBase

from voiceapp.http.refusals import Receive, Scope, Send


class Handler(ASGIHandler):
    """Gives a request a thread if it runs sync code, such as a query of the ORM, and closes its connections there.

    Django's handler starts the thread in any case, to look for connections that a new thread cannot have.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with ThreadSensitiveContext() as context:
            try:
                body = await self.read_body(receive)
            except RequestAborted:
                return
            request, refusal = self.create_request(scope, body)
            leaving = asyncio.ensure_future(receive())
            # A task of its own: sync code that is cancelled leaves an executor that has ended in its context.
            answering = asyncio.create_task(self._answer(request, refusal, send))
            try:
                await asyncio.wait((leaving, answering), return_when=asyncio.FIRST_COMPLETED)
            finally:
                leaving.cancel()
                answering.cancel()
                await asyncio.wait((answering,))
                has_failed = answering.cancelled() or answering.exception() is not None
                response = None if has_failed else answering.result()
                finish = response.close if response else partial(request_finished.send, sender=type(self))
                if context in SyncToAsync.context_to_thread_executor:
                    await sync_to_async(finish)()
                else:
                    finish()
                body.close()
            if not answering.cancelled():
                answering.result()

    async def _answer(
        self, request: ASGIRequest | None, response: HttpResponseBase | None, send: Send
    ) -> HttpResponseBase | None:
        if request is not None:
            response = await self.run_get_response(request)
        with suppress(asyncio.CancelledError):  # the response has to be closed all the same
            await self.send_response(response, send)
        return response
