"""From an SDP offer to a running peer connection."""
