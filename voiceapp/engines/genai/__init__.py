"""Language models inside this process, by onnxruntime-genai (`requirements-genai.txt`)."""
