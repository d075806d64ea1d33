"""The file of SQLite, which holds transcripts and digests of keys."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import ConnectionHandler


@pytest.mark.parametrize(("mode", "kept"), [(None, 0o600), (0o644, 0o600), (0o640, 0o640), (0o664, 0o660)])
def test_no_other_user_of_the_machine_reads_it(tmp_path: Path, mode: int | None, kept: int) -> None:
    file = tmp_path / "rows.sqlite3"
    if mode is not None:
        file.touch()
        file.chmod(mode)
    connection = ConnectionHandler({"default": {"ENGINE": "voiceapp.database.sqlite3", "NAME": file}})["default"]
    opened = connection.get_new_connection(connection.get_connection_params())
    opened.executescript("PRAGMA journal_mode=WAL; CREATE TABLE rows (id)")
    made = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    opened.close()
    assert made == dict.fromkeys(("rows.sqlite3", "rows.sqlite3-wal", "rows.sqlite3-shm"), kept)
