"""Models that other services serve."""
