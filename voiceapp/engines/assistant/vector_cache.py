"""Vectors of texts, kept on disk by the hash of the text, so that a restart embeds nothing twice."""

from __future__ import annotations

import hashlib
import logging
import os
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

log = logging.getLogger(__name__)

Vector = NDArray[np.float32]


class VectorCache:
    """One file. Losing it costs time only, so a broken or unwritable one is no error."""

    def __init__(self, folder: Path, *, fetched: Path | None = None, model: str = "minilm-l6-int8-1") -> None:
        """`fetched` is a further folder to read, and `model` what made the vectors: those of two models never mix."""
        self._path = folder / f"{model}.npz"
        self._fetched = fetched / self._path.name if fetched else None

    @staticmethod
    def key(text: str) -> bytes:
        return hashlib.sha256(text.encode()).digest()

    def read(self) -> dict[bytes, Vector]:
        """All vectors by key; empty when there is no readable file."""
        return (_read(self._fetched) if self._fetched else {}) | _read(self._path)

    def write(self, vectors: dict[bytes, Vector]) -> None:
        """Replace what is stored."""
        part = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        keys = np.frombuffer(b"".join(vectors), dtype=np.uint8).reshape(len(vectors), -1)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with part.open("wb") as stream:
                np.savez(stream, keys=keys, vectors=np.stack(list(vectors.values())))
            part.replace(self._path)
        except OSError as error:
            log.warning("The cache of vectors cannot be written: %s", error)


def _read(path: Path) -> dict[bytes, Vector]:
    try:
        with np.load(path, allow_pickle=False) as stored:
            keys, vectors = stored["keys"], stored["vectors"]
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        log.warning("The cache of vectors cannot be read and is made anew: %s", error)
        return {}
    return {bytes(key): vector for key, vector in zip(keys, vectors, strict=True)}
