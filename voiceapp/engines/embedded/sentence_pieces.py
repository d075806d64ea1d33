"""Reads a SentencePiece model into a tokenizer of the library that reads the others, so that one library is enough.

The file is a protocol buffer, of which four fields matter; the multilingual encoder's is of an early form, in which the
table of characters lies in field 3. https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

PIECES, CHARACTERS = 1, 3
TEXT, SCORE = 1, 2
TABLE = 2
UNKNOWN = 0
"""Number of the piece for what the vocabulary does not have."""

_VARINT, _FIXED_64, _BYTES, _FIXED_32 = 0, 1, 2, 5


def tokenizer(model: bytes) -> Tokenizer:
    """The tokenizer of a unigram model.

    Raises:
        ValueError: if the bytes are not such a model.
    """
    pieces: list[tuple[str, float]] = []
    table = b""
    for number, value in _fields(model):
        if number == PIECES:
            piece = dict(_fields(value))
            (score,) = struct.unpack("<f", piece.get(SCORE, bytes(4)))
            pieces.append((piece[TEXT].decode(), score))
        elif number == CHARACTERS:
            table = dict(_fields(value)).get(TABLE, b"")
    if not pieces or not table:
        raise ValueError("The file holds no SentencePiece model with a table of characters.")
    found = Tokenizer(models.Unigram(pieces, unk_id=UNKNOWN, byte_fallback=False))
    found.normalizer = normalizers.Sequence(
        [normalizers.Precompiled(table), normalizers.Strip(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    found.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    return found


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and value of each field that has bytes."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == _VARINT:
            _, place = _varint(data, place)
            continue
        if kind == _BYTES:
            size, place = _varint(data, place)
        elif kind in (_FIXED_64, _FIXED_32):
            size = 8 if kind == _FIXED_64 else 4
        else:
            raise ValueError("The file is not a protocol buffer.")
        yield key >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        if place >= len(data):
            raise ValueError("The file is not a protocol buffer.")
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
