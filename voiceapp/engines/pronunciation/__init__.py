"""How people say what texts abbreviate: numbers, dates, units, addresses, Markdown."""
