"""What passes between client and session: events, their fields, and the dialects they are spoken in."""
