"""Recognition and synthesis of files: at once, and as tasks."""
