"""Work that outlives its request: accepted, followed, cancelled, never lost."""
