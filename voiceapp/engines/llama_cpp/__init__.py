"""A language model from a GGUF file, run by llama.cpp in a child process of the server."""
