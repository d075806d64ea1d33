"""The project's settings for tests: a laptop's defaults, a database of their own, weights from the usual folder."""

import os

os.environ.setdefault("DEBUG", "1")

from voiceapp.settings import *  # noqa: F403

LOGGING = {}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
