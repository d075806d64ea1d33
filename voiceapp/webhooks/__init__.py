"""Telling others what happened: registered receivers, signed deliveries, and the log of them."""
