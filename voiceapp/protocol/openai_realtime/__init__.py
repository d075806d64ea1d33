"""OpenAI's realtime dialects, the current one (GA) and the older: translations of their events and settings to ours and
back, sans-I/O."""
