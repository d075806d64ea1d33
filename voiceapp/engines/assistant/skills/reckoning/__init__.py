"""Numbers, units and time."""
