"""Chat over HTTP: what a wish is and how it is answered (`answers`), and the native style of asking for it (`api`)."""
