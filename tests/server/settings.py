"""The project's settings, serving the small application of these tests instead of the product."""

import os

from tests.settings import *  # noqa: F403
from voiceapp.catalogue.cards import ModelCard
from voiceapp.settings import LOGGING  # noqa: F401  the log is looked at

ASGI_APPLICATION = os.environ.get("TESTED_APPLICATION", "tests.server.application.application")
ROOT_URLCONF = os.environ.get("TESTED_URLS", "tests.server.urls")
VOICE_MODELS = [ModelCard("weighty", "asr", "tests.server.application.NeedsEveryModelFile")]
