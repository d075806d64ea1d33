"""Neural voices of the operator's: Piper models, whose phonemes the espeak-ng program finds."""
