"""The end of a session and its continuation: revocation, limits of time, resumption, dead processes."""
