"""The product's settings, with a watch over its event loop."""

from voiceapp.settings import *  # noqa: F403

ASGI_APPLICATION = "tests.realtime.watched.application"
