"""Models that callers may name: cards with their capabilities as values, and the lookup by name or alias."""
