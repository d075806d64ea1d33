"""SDP offers, their answers, and running peer connections."""
