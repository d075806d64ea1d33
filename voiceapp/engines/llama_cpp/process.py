"""Starts, watches and ends the program that runs a language model (`child.py`).

One thread for each model owns its program: starts it, asks every few seconds whether it is well, and starts it again
after a pause that grows. Linux ends the program with the thread that started it, so the thread lives as long.
"""

from __future__ import annotations

import asyncio
import http.client
import io
import json
import logging
import os
import secrets
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from voiceapp.engines.espeak.process import INHERITED_VARIABLES
from voiceapp.errors import EngineUnavailable
from voiceapp.formats import one_line

logger = logging.getLogger(__name__)

PROGRAM = Path(__file__).with_name("child.py")
FETCH = "Run `manage.py fetch_models`, or set CHAT_MODEL_FILE to a file that is there."
INSTALL = "Run `pip install -r requirements-llm.txt`."
START_S = 600.0
"""A large model is read from a slow disk for minutes."""
WAIT_S = 30.0
"""Time that a request waits for a program that is starting."""
LOOK_S = 2.0
HUNG_S = 20.0
"""Shortest time without a turn of the loop that writes replies after which the program is ended. On a slow machine a
step of a prompt (`STEP_TOKENS`) takes longer: the time for a request counts where that is more."""
PAUSES_S = (0.5, 2.0, 10.0, 30.0)
"""Before each further start."""
UNREADABLE_PAUSE_S = 300.0
"""Pause when the file could not be loaded, which trying again seldom changes."""
STABLE_S = 60.0
"""A program that ran for so long is started again without a long pause."""
OOM_SCORE = 500
"""Linux then ends this program rather than the server when the memory is used up."""
LOGGED_LINES = 60
LOGGED_EVERY_S = 60.0
"""So many lines of the program are logged in so much time."""
MAX_LINE_BYTES = 4096
"""The rest of a longer line is not looked at."""


@dataclass(frozen=True, slots=True)
class LlamaOptions:
    file: Path
    threads: int
    context_tokens: int
    """Tokens of one conversation and its reply together."""
    slots: int
    """Replies written at once; further ones wait."""


@dataclass(frozen=True, slots=True, eq=False)
class RunningModel:
    address: str
    """`http://127.0.0.1:port`"""
    key: str
    process_id: int
    ended: Future[None] = field(default_factory=Future)


class LlamaProcess:
    """The program of one model, started again whenever it ends while it is needed."""

    def __init__(
        self, options: LlamaOptions, *, program: Path = PROGRAM, hung_s: float = HUNG_S, idle_s: float | None = None
    ) -> None:
        """Nothing runs before `running` is first awaited, nor when nothing was `used` for `idle_s`."""
        self._options = options
        self._program = program
        self._hung_s = hung_s
        self._idle_s = idle_s
        self._uses = 0
        self._used_at = 0.0
        self._lock = threading.Lock()
        self._ready: Future[RunningModel] = Future()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_ready(self) -> bool:
        """The program has its model loaded, or cannot load it."""
        return self._ready.done()

    async def running(self, *, within_s: float = WAIT_S) -> RunningModel:
        """The program, started if need be.

        Raises:
            EngineUnavailable: if it is not ready within `within_s`, or the file cannot be loaded.
        """
        with self._lock:
            self._used_at = time.monotonic()
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._keep_running, name="llama-watch", daemon=True)
                self._thread.start()
            ready = self._ready
        outcome = asyncio.wrap_future(ready)
        outcome.add_done_callback(_take_note)  # its caller may have left
        try:
            async with asyncio.timeout(within_s):
                return await asyncio.shield(outcome)
        except TimeoutError:
            raise EngineUnavailable("The language model is starting; please try again in a moment.") from None

    @contextmanager
    def used(self) -> Iterator[None]:
        """Keep the program running meanwhile."""
        with self._lock:
            self._uses += 1
        try:
            yield
        finally:
            with self._lock:
                self._uses -= 1
                self._used_at = time.monotonic()

    def close(self) -> None:
        """End the program for good; blocks for milliseconds."""
        self._closing.set()
        with self._lock:
            thread, process = self._thread, self._process
        if process is not None:
            process.kill()
        if thread is not None:
            thread.join()

    # ── In the thread ────────────────────────────────────────────────────────────────────────────────────────────────

    def _keep_running(self) -> None:
        failures = 0
        while not self._closing.is_set():
            began = time.monotonic()
            pause_s = self._run_once()
            if threading.current_thread() is not self._thread:  # it rested, and another thread may start it by now
                return
            failures = 0 if time.monotonic() - began > STABLE_S else failures
            if pause_s is None:
                pause_s = PAUSES_S[min(failures, len(PAUSES_S) - 1)]
                failures += 1
            if not self._closing.is_set():
                logger.warning("language model %s: starting again in %g s", self._name, pause_s)
                self._closing.wait(pause_s)
        self._refuse("The language model has been stopped.")

    @property
    def _name(self) -> str:
        return self._options.file.name

    def _run_once(self) -> float | None:
        """Run the program until it ends. Returns the pause before the next start; None for the usual one."""
        if not self._options.file.is_file():
            return self._refuse("The language model's file is missing.", f"There is no {self._options.file}. {FETCH}")
        key = secrets.token_urlsafe(32)
        process = self._start()
        threading.Thread(target=self._log, args=(process.stderr,), name="llama-log", daemon=True).start()
        try:
            reply = self._ask_to_serve(process, key)
            if "address" not in reply:
                return self._unreadable(reply.get("error"))
            model = RunningModel(reply["address"], key, process.pid)
            logger.info("language model %s: ready in process %d", self._name, process.pid)
            self._publish(model)
            self._watch(process, model)
            if threading.current_thread() is self._thread and not self._closing.is_set():
                logger.warning("language model %s: process %d ended (%d)", self._name, process.pid, process.returncode)
                with self._lock:
                    self._ready = Future()
            model.ended.set_result(None)
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                _pipe(pipe).close()
        return None

    def _start(self) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
            [sys.executable, "-P", str(self._program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ},
            start_new_session=True,  # Ctrl-C is for the server, which lets replies end first
        )
        with self._lock:
            self._process = process
        if self._closing.is_set():
            process.kill()
        return process

    def _ask_to_serve(self, process: subprocess.Popen[bytes], key: str) -> dict[str, Any]:
        """Return the program's report once it serves, or cannot; empty when it ended without one."""
        _let_linux_end_it_first(process.pid)
        options = self._options
        request = {
            "file": str(options.file.resolve()),
            "key": key,
            "threads": options.threads,
            "context_tokens": options.context_tokens,
            "slots": options.slots,
        }
        try:
            _pipe(process.stdin).write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return {}
        output = _pipe(process.stdout)
        if not select.select([output], [], [], START_S)[0]:
            return {"error": f"it was not loaded within {START_S:g} s"}
        found: dict[str, Any] = json.loads(output.readline() or b"{}")
        return found

    def _watch(self, process: subprocess.Popen[bytes], model: RunningModel) -> None:
        """Return when the program has ended, or rests; end it when it hangs."""
        well_at = time.monotonic()
        while True:
            try:
                process.wait(LOOK_S)
                return
            except subprocess.TimeoutExpired:
                if self._rests():
                    logger.info("language model %s: process %d rests until it is needed", self._name, process.pid)
                    return
                if _turns(model, self._hung_s):
                    well_at = time.monotonic()
                elif time.monotonic() - well_at > self._hung_s:
                    logger.error("language model %s: process %d hangs and is ended", self._name, process.pid)
                    process.kill()

    def _rests(self) -> bool:
        """Return whether the program was idle for long; then this thread ends with it, and the next use starts both."""
        with self._lock:
            if self._idle_s is None or self._uses or time.monotonic() - self._used_at < self._idle_s:
                return False
            self._thread, self._ready = None, Future()
            return True

    def _publish(self, model: RunningModel) -> None:
        with self._lock:
            if self._ready.done():
                self._ready = Future()
            self._ready.set_result(model)

    def _unreadable(self, why: str | None) -> float:
        """`why` is what the program said; None when it ended without a word, as it does for want of memory."""
        if why is None:
            remedy = f"The process ended while it loaded {self._options.file}: is there memory enough for it?"
        elif "xllamacpp" in why:
            remedy = f"xllamacpp is not installed. {INSTALL}"
        else:
            remedy = f"llama.cpp cannot load {self._options.file}: it is no GGUF model, or memory is short."
        return self._refuse("The language model cannot be loaded.", remedy)

    def _refuse(self, message: str, remedy: str = "") -> float:
        """Tell those who wait, and who come, why there is no model; returns the pause before the next start."""
        error = EngineUnavailable(message, remedy=remedy)
        error.retryable = False
        if remedy:
            logger.error("language model %s: %s", self._name, error.for_operators)
        with self._lock:
            if self._ready.done():
                self._ready = Future()
            self._ready.set_exception(error)
        return UNREADABLE_PAUSE_S

    def _log(self, pipe: IO[bytes]) -> None:
        """Log what llama.cpp writes, such as `0.00.058.587 E llama_model_load: …`, until it ends. Requests of callers
        make it write, and it repeats what is in them."""
        began, logged, left_out = time.monotonic(), 0, 0
        with io.BufferedReader(pipe) as lines:  # type: ignore[type-var]
            is_rest = False
            while line := lines.readline(MAX_LINE_BYTES):
                is_rest, was_rest = not line.endswith(b"\n"), is_rest
                text = one_line(line.decode("utf-8", "replace").strip())
                if was_rest or not text:
                    continue
                if time.monotonic() - began > LOGGED_EVERY_S:
                    if left_out:
                        logger.warning("language model %s: %d lines left out", self._name, left_out)
                    began, logged, left_out = time.monotonic(), 0, 0
                if logged < LOGGED_LINES:
                    level = logging.WARNING if text.split(" ")[1:2] in (["E"], ["W"]) else logging.INFO
                    logger.log(level, "language model %s: %s", self._name, text)
                    logged += 1
                else:
                    left_out += 1


def _take_note(outcome: asyncio.Future[RunningModel]) -> None:
    _ = outcome.cancelled() or outcome.exception()


def _turns(model: RunningModel, timeout_s: float) -> bool:
    """Return whether the loop that writes replies still turns, which `/health` does not say; a token would have to wait
    for a free slot."""
    connection = http.client.HTTPConnection(urlsplit(model.address).netloc, timeout=timeout_s)
    try:
        connection.request("GET", "/slots", headers={"Authorization": f"Bearer {model.key}"})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _let_linux_end_it_first(process_id: int) -> None:
    score = Path(f"/proc/{process_id}/oom_score_adj")
    try:
        score.write_text(str(OOM_SCORE))
    except OSError:
        return  # not Linux, or the program has ended already


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # all were asked for as pipes
    return pipe
