"""Realtime models of a service elsewhere."""
