"""Embedding and reranking over HTTP: three styles of request each read into one call."""
