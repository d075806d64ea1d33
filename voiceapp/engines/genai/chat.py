"""A language model from a folder, run by onnxruntime-genai: ONNX files, a tokenizer, `genai_config.json`.

One answer at a time, in a lane of its own, so that neither recognition nor speech waits behind it. Whoever goes away
stops it between two tokens. The package is not among the requirements: it is looked for when the first answer is.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voiceapp.engines.interfaces import ChatCapabilities, ChatDelta, ChatMessage, ChatRequest, ChatUsage
from voiceapp.engines.lanes import Lane
from voiceapp.errors import EngineRefused, EngineUnavailable

CONFIGURATION = "genai_config.json"
INSTALL = "pip install -r requirements-genai.txt"
USUAL_CONTEXT_TOKENS = 4096
WAITING = 8
"""Answers that may wait for the one being written, it included."""
SAMPLING = ("top_k", "repetition_penalty")
"""What goes from a request's `extra` to the search options of the same name."""


@dataclass(frozen=True, slots=True)
class _Loaded:
    package: Any
    """`onnxruntime_genai`, which comes without types."""
    model: Any
    tokenizer: Any
    context_tokens: int
    """Of the conversation and its answer together."""
    ends: frozenset[int]
    """Tokens that end an answer."""


class GenaiChat:
    """A `ChatModel`. One per process and folder."""

    capabilities = ChatCapabilities()

    def __init__(self, *, folder: str, max_output_tokens: int = 1024) -> None:
        """`max_output_tokens` ends an answer whose length nobody limited."""
        self._folder = Path(folder)
        self._max_output_tokens = max_output_tokens
        self._lane = Lane("chat", threads=1, capacity=WAITING)
        self._loaded: _Loaded | None = None

    async def warm(self) -> None:
        """Load the model. Raises EngineUnavailable when the package or the folder is missing."""
        await self._lane.run(self._load)

    async def close(self) -> None:
        """Let go of the model after the token being made."""
        self._lane.close()
        self._loaded = None

    async def stream(self, request: ChatRequest) -> AsyncGenerator[ChatDelta, None]:
        """Raises EngineUnavailable (also of a full lane), or EngineRefused when the conversation is too long."""
        loop = asyncio.get_running_loop()
        deltas: asyncio.Queue[ChatDelta | None] = asyncio.Queue()
        stop = threading.Event()

        def hand_over(delta: ChatDelta) -> None:
            loop.call_soon_threadsafe(deltas.put_nowait, delta)

        def ended(work: asyncio.Task[None]) -> None:
            _ = work.cancelled() or work.exception()  # taken note of, should nobody wait for it any more
            deltas.put_nowait(None)

        work = asyncio.create_task(self._lane.run(self._answer, request, hand_over, stop))
        work.add_done_callback(ended)
        try:
            while (delta := await deltas.get()) is not None:
                yield delta
            await work
        finally:
            stop.set()
            work.cancel()

    def _answer(self, request: ChatRequest, hand_over: Callable[[ChatDelta], None], stop: threading.Event) -> None:
        """Write one answer; runs in the lane."""
        if stop.is_set():
            return
        loaded = self._load()
        try:
            prompt = loaded.tokenizer.encode(
                loaded.tokenizer.apply_chat_template(_messages(request.messages), add_generation_prompt=True)
            )
            room = loaded.context_tokens - len(prompt)
            if room < 1:
                raise EngineRefused(
                    f"The conversation has {len(prompt)} tokens; the model reads {loaded.context_tokens}, its answer "
                    "included."
                )
            most = min(request.max_tokens or self._max_output_tokens, room)
            writing = loaded.package.Generator(loaded.model, _parameters(loaded, request, len(prompt) + most))
            writing.append_tokens(prompt)
            reader = loaded.tokenizer.create_stream()
            ends = loaded.ends | set(request.extra.get("stop_token_ids") or ())
            count, reason = 0, "length"
            while count < most and not stop.is_set():
                writing.generate_next_token()
                token = int(writing.get_next_tokens()[0])
                if token in ends:
                    reason = "stop"
                    break
                count += 1
                if text := reader.decode(token):
                    hand_over(ChatDelta(text=text))
        except RuntimeError as error:  # what the package raises, whatever went wrong
            raise EngineUnavailable("The language model failed on this conversation.") from error
        if not stop.is_set():
            hand_over(ChatDelta(finish_reason=reason, usage=ChatUsage(len(prompt), count)))

    def _load(self) -> _Loaded:
        if self._loaded is None:
            self._loaded = _load(self._folder)
        return self._loaded


def _load(folder: Path) -> _Loaded:
    """Raises EngineUnavailable when the package, the folder or something in it is missing or broken."""
    if not (folder / CONFIGURATION).is_file():
        raise _unavailable(f"CHAT_MODEL_DIR: there is no {CONFIGURATION} in {folder}.")
    try:
        package = importlib.import_module("onnxruntime_genai")
    except ImportError as error:
        raise _unavailable(f"CHAT_MODEL_DIR needs onnxruntime-genai: {INSTALL}") from error
    package.disable_telemetry_events()
    try:
        configuration = json.loads((folder / CONFIGURATION).read_text())
        model = package.Model(str(folder))
        tokenizer = package.Tokenizer(model)
        return _Loaded(
            package,
            model,
            tokenizer,
            int(configuration["model"].get("context_length") or USUAL_CONTEXT_TOKENS),
            frozenset(map(int, tokenizer.eos_token_ids)),
        )
    except (RuntimeError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise _unavailable(f"CHAT_MODEL_DIR: the model in {folder} cannot be loaded.") from error


def _unavailable(message: str) -> EngineUnavailable:
    error = EngineUnavailable(message)
    error.retryable = False
    return error


def _parameters(loaded: _Loaded, request: ChatRequest, max_length: int) -> Any:
    """
    Raises:
        RuntimeError: if the package does not take a value.
    """
    options: dict[str, Any] = {"max_length": max_length}
    options |= {name: request.extra[name] for name in SAMPLING if request.extra.get(name)}
    if request.temperature is not None:
        # At zero nothing is left to chance, and the package takes no division by it.
        options |= {"temperature": request.temperature} if request.temperature else {"do_sample": False}
        options |= {"do_sample": True} if request.temperature else {}
    if request.top_p is not None:
        options["top_p"] = request.top_p
    if request.seed is not None:
        options["random_seed"] = request.seed % 2**31
    parameters = loaded.package.GeneratorParams(loaded.model)
    parameters.set_search_options(**options)
    return parameters


def _messages(messages: tuple[ChatMessage, ...]) -> str:
    """As chat templates expect them; what a tool answered is shown as the user's words to a model without tools."""
    return json.dumps(
        [
            {"role": "user" if message.role == "tool" else message.role, "content": message.content}
            for message in messages
            if message.content
        ]
    )
