"""Models that services with this server's interface serve over HTTP."""
