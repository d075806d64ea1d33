"""The assistant's side of a session: one response at a time, paced out and interrupted."""
