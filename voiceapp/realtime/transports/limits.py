"""Limits on what a caller may send, and how slowly they may read, on every transport."""

from __future__ import annotations

from voiceapp.realtime.close_codes import BUDGET_USED_UP, NORMAL, SERVER_STOPPING

MESSAGES_PER_S = 100
MAX_MESSAGE_BYTES = 1024 * 1024

MAX_UNREAD_EVENTS = 1000
"""Messages, and pieces of sound of 20 ms, that the session has not read yet."""
MAX_UNREAD_BYTES = 2 * MAX_MESSAGE_BYTES
"""Unread bytes of messages: one of the largest, and as much again that came before it was read."""
MAX_UNHEARD_BYTES = 256 * 1024
"""Sound that waits in the tasks of one connection; what comes after it waits in the connection."""

MAX_UNSENT_BYTES = 1024 * 1024
"""Written, and not taken by the caller: more is not written before they have read."""
SLOW_READER_S = 10.0
"""A caller who does not read for this long has lost the session."""

PLAYED_S = {NORMAL: 60.0, SERVER_STOPPING: 1.0, BUDGET_USED_UP: 5.0}
"""By close code: the longest rest of a reply that is still played on a media track at an end that comes after it."""
