"""The product with one kind of task, which takes as long as it is told and writes down each time it is begun."""

import os

from voiceapp.settings import *  # noqa: F403

TASK_KINDS = ["tests.leases.pausing.Pausing"]
RUNS_FILE = os.environ["RUNS_FILE"]
"""A line for each beginning: the task, and the time in the eyes of its worker."""
RATE_LIMITS = dict.fromkeys(RATE_LIMITS, "off")  # noqa: F405
VOICE_MODELS = []  # which would have to be loaded at every start
