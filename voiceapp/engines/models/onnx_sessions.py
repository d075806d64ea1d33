"""ONNX sessions the way this process wants them: one per file, one thread each, never spinning."""

from __future__ import annotations

import threading
from pathlib import Path

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

from voiceapp.engines.models import weights
from voiceapp.errors import EngineUnavailable

UNLOADABLE = (
    *(RuntimeError, ValueError, state.Fail, state.InvalidArgument, state.InvalidGraph, state.InvalidProtobuf),
    *(state.NoSuchFile, state.NotImplemented, state.RuntimeException),
)
"""Errors that onnxruntime raises for files that it cannot load."""

_sessions: dict[Path, onnxruntime.InferenceSession] = {}
_lock = threading.Lock()


def session(name: str) -> onnxruntime.InferenceSession:
    """The session of the model file `name`, loaded on first use and shared; `run` is safe from several threads.

    Blocks while it loads (up to 0.3 s).

    Raises:
        EngineUnavailable: if the file is missing or does not load.
    """
    return session_of(weights.require(name))


def session_of(file: Path) -> onnxruntime.InferenceSession:
    """Open an ONNX session of a model file anywhere.

    Raises:
        EngineUnavailable: if it does not load.
    """
    with _lock:
        if file not in _sessions:
            _sessions[file] = _load(file)
        return _sessions[file]


def _load(file: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    # Lanes give the parallelism; a model that took all cores would make every other conversation wait, and threads
    # that spin between calls burn a core for nothing.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.inter_op.allow_spinning", "0")
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    except UNLOADABLE as error:
        raise EngineUnavailable(
            "A model file is damaged.", remedy=f"Delete {file.name} and run `python manage.py fetch_models`."
        ) from error
