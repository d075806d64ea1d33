"""From any exception to a status and a sentence."""

from __future__ import annotations

import errno

from django.db import OperationalError

from voiceapp.http.error_responses import error_response_of


def test_a_disk_that_is_full_is_a_reason_to_come_back() -> None:
    answer = error_response_of(OSError(errno.ENOSPC, "No space left on device", "/var/lib/secret"))
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "ServiceUnavailable", "60")
    assert "disk space" in answer.message
    assert "secret" not in answer.message
    assert error_response_of(OSError(errno.EACCES, "Permission denied")).status == 500


def test_a_database_that_is_away_is_a_reason_to_come_back() -> None:
    answer = error_response_of(OperationalError("database is locked"))
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "ServiceUnavailable", "1")
    assert "locked" not in answer.message
