"""Rows and events that a session leaves behind."""
