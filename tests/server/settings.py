"""The project's settings, serving the small application of these tests instead of the product."""

from tests.settings import *  # noqa: F403
from voiceapp.settings import LOGGING  # noqa: F401  the log is looked at

ASGI_APPLICATION = "tests.server.application.application"
ROOT_URLCONF = "tests.server.urls"
