"""A realtime session that another service serves, sans-I/O."""
