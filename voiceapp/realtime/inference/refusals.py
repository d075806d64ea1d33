"""What tasks fail with."""

from __future__ import annotations

import logging

from voiceapp.errors import RemoteProtocolError
from voiceapp.formats import one_line
from voiceapp.http.error_responses import error_response_of
from voiceapp.protocol import run_task as wire
from voiceapp.realtime.readings import ReadingEnded

logger = logging.getLogger(__name__)


def refusal(task_id: str, error: Exception) -> wire.RunTaskError:
    """The error as what a task fails with; what nobody expected is logged whole."""
    if isinstance(error, RemoteProtocolError):
        return wire.RunTaskError(error.message, code=error.code, task_id=task_id)
    if isinstance(error, ReadingEnded):
        return wire.RunTaskError(error.reason, code=error.error or "ServiceUnavailable", task_id=task_id)
    response = error_response_of(error)
    if response.is_fault:
        logger.error("inference task %s: failed with an unexpected error", one_line(task_id), exc_info=error)
    return wire.RunTaskError(response.message, code=response.code, task_id=task_id)
