"""Arithmetic on sound: codecs, resampling, files and streams, echo."""
