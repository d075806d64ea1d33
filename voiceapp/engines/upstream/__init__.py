"""Models of services elsewhere that have this server's interface."""
