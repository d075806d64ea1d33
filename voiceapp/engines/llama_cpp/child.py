"""The program that runs a language model: llama.cpp with its OpenAI-compatible HTTP server, on loopback.

It is run as a program of its own (`python child.py`) and imports nothing of this project: a crash of the native code,
or the memory of the model, ends only this process.

In, on standard input: one line of JSON, {"file": path, "key": text, "threads": number, "context_tokens": number,
"slots": number}. The input stays open: its end means that the server is gone, and ends this program.

Out, on standard output: one line of JSON once the model is loaded, {"address": "http://127.0.0.1:port"}, or
{"error": text}. llama.cpp writes its log to standard error.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from typing import Any

PR_SET_PDEATHSIG = 1
"""linux/prctl.h"""
READ_TIMEOUT_S = 600
"""Time that llama.cpp waits for its client, which is a process of this machine."""
PROMPT_CACHE_MIB = 256
"""Prompts of conversations that have no slot at the moment are kept in so much memory."""
NICENESS = 5
"""Speech goes first: a reply that is a little later is heard less than sound that stutters."""
STEP_TOKENS = 128
"""Tokens of a prompt that are read before the loop that writes replies turns again: it shows that it is not stuck."""
QUIET = 2
"""Verbosity of llama.cpp: errors and warnings."""


def main() -> None:
    die_with_parent()
    os.nice(NICENESS)
    # llama.cpp prints; the line that the server reads must stay alone.
    replies_fd = os.dup(1)
    os.dup2(2, 1)
    request = json.loads(first_line())
    threading.Thread(target=end_with_input, daemon=True).start()
    try:
        server = serve(request)
    except ImportError:
        reply = {"error": "xllamacpp is not installed"}
    except (RuntimeError, ValueError, TypeError, OSError) as error:
        reply = {"error": str(error) or type(error).__name__}
    else:
        reply = {"address": server.listening_address}
    os.write(replies_fd, json.dumps(reply).encode() + b"\n")
    while "address" in reply:
        signal.pause()
    os._exit(1)  # a plain exit would wait for the thread that reads


def die_with_parent() -> None:
    """Ask Linux to kill this process when the server dies, even while it is stopped by a signal."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n") and (part := os.read(0, 1)):
        line += part
    return line


def end_with_input() -> None:
    """Wait for the end of the input, and end at once: native threads must not keep the process."""
    while os.read(0, 4096):
        continue
    os._exit(0)


def serve(request: dict[str, Any]) -> Any:
    """The running server of llama.cpp.

    Raises:
        RuntimeError: if the file cannot be loaded.
    """
    import xllamacpp  # a native library: only this process loads it

    parameters = xllamacpp.CommonParams()
    parameters.model.path = request["file"]
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [request["key"]]
    parameters.n_parallel = request["slots"]
    parameters.n_ctx = request["context_tokens"] * request["slots"]
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = request["threads"]
    # Threads that poll while they wait take the cores from those that they wait for, when there is other work.
    parameters.cpuparams.poll = parameters.cpuparams_batch.poll = 0
    parameters.fit_params = False  # what was asked for, or an error
    parameters.cache_ram_mib = PROMPT_CACHE_MIB
    parameters.timeout_read = parameters.timeout_write = READ_TIMEOUT_S
    parameters.use_jinja = True
    parameters.ui = False
    parameters.n_batch = STEP_TOKENS
    parameters.verbosity = QUIET
    return xllamacpp.Server(parameters)


if __name__ == "__main__":
    main()
