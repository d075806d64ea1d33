"""Kokoro: voices of five languages, slow and good."""
