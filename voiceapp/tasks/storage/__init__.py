"""Files of tasks: what callers send, what tasks leave, and the room on the disk between."""
