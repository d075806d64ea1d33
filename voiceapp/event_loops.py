"""Objects that belong to an event loop, and a limit in time that costs nothing where nothing is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


def per_loop(factory: Callable[[], T]) -> Callable[[], T]:
    """A function that returns the running loop's object; `factory` makes it when it is asked for first.

    Raises:
        RuntimeError: from the function, if no event loop is running.
    """
    made: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def of_running_loop() -> T:
        loop = asyncio.get_running_loop()
        if loop not in made:
            made[loop] = factory()
        return made[loop]

    return of_running_loop


async def within(limit_s: float, work: Coroutine[Any, Any, T]) -> T:
    """Await a coroutine, like `asyncio.timeout` around it; no timer is made unless it has to wait.

    Raises:
        TimeoutError: if it waits for longer.
    """
    try:
        waits_for = work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    async with asyncio.timeout(limit_s):
        return await _Begun(work, waits_for)


class _Begun(Generic[T]):
    """A coroutine that was begun, and waits."""

    def __init__(self, work: Coroutine[Any, Any, T], waits_for: Any) -> None:
        self._work = work
        self._waits_for = waits_for

    def __await__(self) -> Generator[Any, Any, T]:
        """As `yield from` has it (PEP 380), from the coroutine's first wait on."""
        waits_for = self._waits_for
        try:
            while True:
                try:
                    sent = yield waits_for
                except Exception as error:
                    waits_for = self._work.throw(error)
                except asyncio.CancelledError as cancelled:
                    waits_for = self._work.throw(cancelled)
                else:
                    waits_for = self._work.send(sent)
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            self._work.close()
