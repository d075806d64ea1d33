"""Voiceapp: a voice assistant in the browser, and a model server for programs."""

import os

# Before NumPy is loaded: the lanes give the parallelism, and the threads of its linear algebra would only spin beside
# them (a turn decision cost four times the processor time).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Before ONNX Runtime is loaded, which would report to its maker: no process of ours does.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
