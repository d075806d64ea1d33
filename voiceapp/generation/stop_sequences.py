"""Ending an answer where the caller said, for engines that do not know how. No I/O: text in, text out."""

from __future__ import annotations

from collections.abc import Sequence


class StopFilter:
    """Passes an answer on up to the first stop sequence, which is left out.

    What may turn out to be the beginning of one waits for the next piece.
    """

    def __init__(self, sequences: Sequence[str]) -> None:
        self._sequences = [sequence for sequence in sequences if sequence]
        self._held = ""
        self.has_stopped = False

    def feed(self, text: str) -> str:
        """Return the part of the reply that will not change any more; empty after the end."""
        if not self._sequences:
            return text
        if self.has_stopped:
            return ""
        text = self._held + text
        ends = [at for sequence in self._sequences if (at := text.find(sequence)) >= 0]
        if ends:
            self.has_stopped, self._held = True, ""
            return text[: min(ends)]
        kept = max(self._begun(text, sequence) for sequence in self._sequences)
        self._held = text[len(text) - kept :]
        return text[: len(text) - kept]

    def flush(self) -> str:
        """Return the text that was held back and is no stop sequence, at the end of the reply."""
        held, self._held = self._held, ""
        return held

    @staticmethod
    def _begun(text: str, sequence: str) -> int:
        """Return the length of the longest end of `text` that a stop sequence begins with."""
        lengths = range(min(len(sequence) - 1, len(text)), 0, -1)
        return next((length for length in lengths if text.endswith(sequence[:length])), 0)
