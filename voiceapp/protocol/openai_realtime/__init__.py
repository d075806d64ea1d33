"""OpenAI's current realtime dialect (GA): a translation of its events and settings to ours and back, sans-I/O."""
