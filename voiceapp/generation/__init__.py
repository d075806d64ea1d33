"""Chat over HTTP: what a call is (`calls`), how it is replied to (`chat`), and the native style of asking (`api`)."""
