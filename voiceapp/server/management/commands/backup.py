"""`manage.py backup FILE`: the database and the files of VAR_DIR in one compressed tar.

It holds `manifest.json`, `database` (SQLite's file, or the SQL of `pg_dump`) and `var/…`, and no secret of the
settings: a sealed text tells `restore` whether a server has the one that its rows need.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.utils import timezone

from voiceapp.formats import moment, size
from voiceapp.sealing import seal

FORMAT = 1
SEALED = "a backup of Voiceapp"
MADE_AGAIN = frozenset({"aoq", "clients", "development-key", "fastrtc", "javascript", "models", "retrieval", "work"})
"""Files of VAR_DIR that are fetched, made or minted anew; the key and the certificate are secrets as well."""
ELSEWHERE = ("TASK_STORAGE", "DOCUMENTS_DIR", "AGENTS_DIR", "VOICES_DIR")
"""Settings that name places of the operator's own."""


class Command(BaseCommand):
    help = "Save the database and the files of this installation in FILE (.tar.gz). The server may run meanwhile."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *, file: Path, **options: Any) -> None:
        if file.exists():
            raise CommandError(f"{file} exists already: name another one.")
        secret = "WEBHOOK_SECRET_KEY" if settings.WEBHOOK_SECRET_KEY else "SECRET_KEY"
        try:
            count = _save(file, secret)
        except OSError as error:
            raise CommandError(f"The backup cannot be written: {error}.") from error
        self.stdout.write(f"{file} holds the database and {count} files, {size(file.stat().st_size)}.")
        self.stdout.write(f"Keep {secret} with it: without it, sealed secrets of webhooks and agents cannot be read.")
        if kept := [f"{name} ({place})" for name in ELSEWHERE if (place := getattr(settings, name))]:
            self.stdout.write(f"Not in it: {', '.join(kept)}.")


def _save(target: Path, secret: str) -> int:
    """Write a backup, readable by its owner only; return how many files of VAR_DIR are in it.

    The database comes first, so that every file that its tasks name is there.
    """
    manifest = {
        "format": FORMAT,
        "version": settings.VERSION,
        "made_at": moment(timezone.now()),
        "database": connection.vendor,
        "sealed_with": secret,
        "sealed": seal(SEALED),
    }
    with tempfile.TemporaryDirectory(dir=target.absolute().parent) as folder:  # 0700
        unfinished, dump, text = (Path(folder, name) for name in ("unfinished", "database", "manifest.json"))
        text.write_text(json.dumps(manifest))
        if connection.vendor == "sqlite":
            with closing(sqlite3.connect(connection.settings_dict["NAME"], timeout=20)) as running:
                running.execute("VACUUM INTO ?", [str(dump)])
        else:
            run("pg_dump", "--no-owner", "--no-privileges", f"--file={dump}")
        count = 0
        with tarfile.open(unfinished, mode="w:gz", compresslevel=6) as archive:
            archive.add(text, "manifest.json")
            archive.add(dump, "database")
            for file, name in _files():
                with suppress(FileNotFoundError):  # its time was over meanwhile
                    archive.add(file, name, recursive=False)
                    count += 1
        unfinished.chmod(0o600)
        unfinished.rename(target)
    return count


def _files() -> Iterator[tuple[Path, str]]:
    """Files of VAR_DIR that a backup holds, with their names in it."""
    root, models = Path(settings.VAR_DIR), Path(settings.MODELS_DIR)
    database = str(connection.settings_dict["NAME"])
    for file in sorted(root.rglob("*")):
        name = file.relative_to(root)
        is_ours = name.parts[0] not in MADE_AGAIN and not file.is_relative_to(models)
        if is_ours and file.is_file() and not file.is_symlink() and not str(file.absolute()).startswith(database):
            yield file, f"var/{name}"


def run(program: str, *options: str) -> None:
    """Run one of PostgreSQL's programs on the database; its password does not stand in the list of processes.

    Raises:
        CommandError: if it is not installed, or fails.
    """
    (_, *address, name), variables = connection.client.settings_to_cmd_args_env(connection.settings_dict, [])
    found = shutil.which(program)
    if found is None:
        raise CommandError(f"{program} is not installed: install PostgreSQL's client programs (postgresql-client).")
    done = subprocess.run(  # noqa: S603 - a program by its name, options of ours
        [found, *address, f"--dbname={name}", *options],
        env={**os.environ, **(variables or {})},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise CommandError(f"{program} failed: {done.stderr.strip()[-500:]}")
