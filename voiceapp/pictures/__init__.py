"""Pictures and films, made by models elsewhere."""
