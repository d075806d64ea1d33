"""The project's settings for tests: a laptop's defaults, a database of their own, weights from the usual folder."""

import os

os.environ.setdefault("DEBUG", "1")
# Quick, and the same each time; tests of the neural voice ask for it.
os.environ.setdefault("DEFAULT_VOICE", "en-us")
os.environ.setdefault("TURN_BUDGET_MS", "0")

from voiceapp.settings import *  # noqa: F403

ALLOWED_HOSTS = [*ALLOWED_HOSTS, "testserver"]  # noqa: F405
"""Whom test clients call, also where a file asks for the interface before its first test."""
LOGGING = {}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WEBHOOK_ALLOWED_NETWORKS = []
"""As in production: a test opens the networks that it needs."""
