"""Events between client and session, their fields and dialects."""
