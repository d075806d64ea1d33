"""Django's ASGI handler, without the two threads that it starts for every request."""

from __future__ import annotations

import asyncio
from functools import partial

from asgiref.sync import SyncToAsync, ThreadSensitiveContext, sync_to_async
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler
from django.core.signals import request_finished

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
            request, response = self.create_request(scope, body)
            answering, leaving = asyncio.current_task(), asyncio.ensure_future(receive())
            assert answering is not None
            leaving.add_done_callback(lambda left: None if left.cancelled() else answering.cancel())
            try:
                if request is not None:
                    response = await self.run_get_response(request)
                await self.send_response(response, send)
            except asyncio.CancelledError:
                if not leaving.done():
                    raise
            finally:
                leaving.cancel()
                finish = response.close if response else partial(request_finished.send, sender=type(self))
                if context in SyncToAsync.context_to_thread_executor:
                    finish = sync_to_async(finish)
                    await finish()
                else:
                    finish()
                body.close()
