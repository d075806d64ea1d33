from __future__ import annotations

import ctypes
import os
import platform
from pathlib import Path

import pytest

from voiceapp.memory import give_back

BLOCK_BYTES = 64 * 1024
BLOCKS = 1000


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no malloc_trim")
def test_memory_that_was_freed_goes_back_to_the_system() -> None:
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    blocks = [ctypes.c_void_p(library.malloc(BLOCK_BYTES)) for _ in range(BLOCKS)]
    for block in blocks:
        ctypes.memset(block, 1, BLOCK_BYTES)
    for block in blocks[:-1]:  # the last one holds the top of the heap
        library.free(block)
    before = resident_bytes()
    give_back()
    given_back = before - resident_bytes()
    library.free(blocks[-1])
    assert given_back > BLOCKS * BLOCK_BYTES / 2


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
