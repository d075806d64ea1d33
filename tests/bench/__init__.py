"""How fast, how right and how costly the real server is, measured where a caller stands: at the client's socket."""
