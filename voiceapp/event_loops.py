"""Objects that belong to an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar
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
