"""The program that speaks: espeak-ng behind a pipe.

It is run as a program of its own (`python child.py`) and imports nothing of this project, because espeak-ng is
GPL-3.0-or-later: the server never loads the library, it talks to this process. A crash of the library ends only this
process, too.

In, on standard input: one JSON object per line, {"id": number, "voice": name, "wpm": number, "pause": boolean,
"text": string}; `pause` asks for the pause that belongs behind the text. {"id": number, "voice": name, "clauses":
[string, …]} asks how the clauses are pronounced. They are served in order. End of file ends it.

Out, on standard output: frames, each a header of three little-endian numbers (id: uint32, kind: uint32, length:
uint32) and `length` bytes. Kind 0 comes first, once: the sample rate as a uint32. Kind 1 is mono int16 little-endian
sound, kind 2 ends a request, kind 3 is a JSON array with the phonemes of each clause in the International Phonetic
Alphabet.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from collections.abc import Callable

HELLO, SOUND, END, PHONEMES = 0, 1, 2, 3
HEADER = struct.Struct("<III")

# Values of speak_lib.h.
SYNCHRONOUS = 2
DO_NOT_EXIT = 0x8000
RATE = 1
POSITION_CHARACTER = 1
UTF8 = 1
END_PAUSE = 0x1000
IPA = 2

BUFFER_MS = 40
FALLBACK_VOICE = b"en-us"

Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p)


def main() -> None:
    # The library writes warnings to standard output; they must not land between frames.
    frames_fd = os.dup(1)
    os.dup2(2, 1)
    with open(frames_fd, "wb", buffering=0) as pipe:

        def send(request: int, kind: int, payload: bytes = b"") -> None:
            rest = memoryview(HEADER.pack(request, kind, len(payload)) + payload)
            while rest:
                rest = rest[pipe.write(rest) or 0 :]

        try:
            serve(send)
        except BrokenPipeError:
            return  # the server is gone


def serve(send: Callable[..., None]) -> None:
    import espeakng_loader  # here only: the server reads the constants above, and nothing of espeak-ng

    library = ctypes.CDLL(espeakng_loader.get_library_path())
    os.chdir(espeakng_loader.get_data_path())  # the library cuts paths at 160 bytes; a dot is always short enough
    sample_rate_hz = library.espeak_Initialize(SYNCHRONOUS, BUFFER_MS, b".", DO_NOT_EXIT)
    if sample_rate_hz <= 0:
        sys.exit("espeak-ng found no data.")
    current = 0

    def hand_over(samples: ctypes.Array[ctypes.c_short], count: int, events: int) -> int:
        try:
            if samples and count:
                send(current, SOUND, ctypes.string_at(samples, 2 * count))
        except BrokenPipeError:
            return 1  # stop: the process that reads is gone
        return 0

    on_sound = Callback(hand_over)  # a name, so that it lives as long as the library calls it
    library.espeak_SetSynthCallback(on_sound)
    send(0, HELLO, struct.pack("<I", sample_rate_hz))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        current = request["id"]
        if library.espeak_SetVoiceByName(request["voice"].encode()) != 0:
            library.espeak_SetVoiceByName(FALLBACK_VOICE)
        if "clauses" in request:
            found = [phonemes(library, clause) for clause in request["clauses"]]
            send(current, PHONEMES, json.dumps(found, ensure_ascii=False).encode())
            send(current, END)
            continue
        library.espeak_SetParameter(RATE, request["wpm"], 0)
        text = encoded(request["text"])
        flags = UTF8 | (END_PAUSE if request["pause"] else 0)
        library.espeak_Synth(text, len(text), 0, POSITION_CHARACTER, 0, flags, None, None)
        send(current, END)


def phonemes(library: ctypes.CDLL, text: str) -> str:
    """Return the phonemes of a text; the library takes it in parts, and moves the pointer on to its end."""
    library.espeak_TextToPhonemes.restype = ctypes.c_char_p
    library.espeak_TextToPhonemes.argtypes = (ctypes.POINTER(ctypes.c_void_p), ctypes.c_int, ctypes.c_int)
    buffer = ctypes.create_string_buffer(encoded(text))
    rest = ctypes.c_void_p(ctypes.addressof(buffer))
    parts: list[str] = []
    while rest.value:
        part = library.espeak_TextToPhonemes(ctypes.byref(rest), UTF8, IPA)
        parts.append((part or b"").decode("utf-8", "replace").strip())
    return " ".join(part for part in parts if part)


def encoded(text: str) -> bytes:
    return text.replace("\0", " ").encode("utf-8", "replace") + b"\0"


if __name__ == "__main__":
    main()
