"""Speech over RTP: Opus, the order of packets, the two tracks of a call, and the clock that sends for all calls."""
