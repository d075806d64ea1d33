"""Recognition and synthesis as tasks on a WebSocket, as the vendor's client libraries know them."""
