"""Calling addresses that users supply: which ones may be called, and the client that does."""
