"""Speech from text in this process: the voice that was chosen, and the next one where it fails."""
