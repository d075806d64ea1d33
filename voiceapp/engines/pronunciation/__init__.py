"""Pronunciation of what texts abbreviate: numbers, dates, units, addresses, Markdown."""
