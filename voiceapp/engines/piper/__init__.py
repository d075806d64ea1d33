"""Neural voices: any Piper model, its phonemes from the espeak-ng program, its sound from onnxruntime."""
