"""`manage.py restore FILE`: an installation as `manage.py backup` saved it."""

from __future__ import annotations

import argparse
import json
import shutil
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, connection

from voiceapp.accounts.models import Account
from voiceapp.sealing import unseal
from voiceapp.server.management.commands.backup import FORMAT, SEALED, run


class Command(BaseCommand):
    help = "Put what `backup` saved in FILE in the place of the database and the files here. Stop the server first."
    requires_system_checks = ()
    """The database may not be there yet."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--replace", action="store_true", help="delete the accounts and rows that are here")

    def handle(self, *, file: Path, replace: bool, **options: Any) -> None:
        connection.settings_dict["OPTIONS"].pop("pool", None)  # its connections would look like another's
        try:
            with tempfile.TemporaryDirectory(dir=settings.VAR_DIR) as name, tarfile.open(file, "r:gz") as archive:
                folder = Path(name)
                archive.extractall(folder, filter="data")
                manifest = _read(folder)
                tables = connection.introspection.table_names()
                if not replace and Account._meta.db_table in tables and Account.objects.exists():
                    raise CommandError("The database has accounts. Add --replace to delete all that is here.")
                _require_alone()
                _load(folder / "database", tables)
                for found in folder.glob("var/*"):
                    place = Path(settings.VAR_DIR, found.name)
                    if place.is_dir():
                        shutil.rmtree(place)
                    shutil.move(found, place)
        except (OSError, tarfile.TarError, EOFError) as error:
            raise CommandError(f"{file} cannot be restored: {error}.") from error
        call_command("migrate", interactive=False, verbosity=0)
        self.stdout.write(f"Restored what version {manifest['version']} saved at {manifest['made_at']}.")


def _read(folder: Path) -> dict[str, Any]:
    try:
        manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
        kind, version, sealed, secret = (manifest[name] for name in ("database", "format", "sealed", "sealed_with"))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError("This is no backup of Voiceapp.") from error
    if version != FORMAT:
        raise CommandError("A newer version wrote this backup: restore it with that version.")
    if kind != connection.vendor:
        raise CommandError(f"This is a backup of {kind}, and DATABASE_URL names a database of {connection.vendor}.")
    if unseal(sealed) != SEALED:
        raise CommandError(f"{secret} is another one than when this backup was made: set it to that, and try again.")
    return manifest


def _require_alone() -> None:
    """Check that no other process uses the database, whose rows would be lost or mixed with those of the backup."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":  # only a connection that is alone leaves WAL
            cursor.execute("PRAGMA busy_timeout=500")
            with suppress(OperationalError):
                cursor.execute("PRAGMA journal_mode=DELETE")
            is_alone = cursor.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
        else:
            cursor.execute(
                "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database()"
                " AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            )
            (is_alone,) = cursor.fetchone()
    connection.close()
    if not is_alone:
        raise CommandError("Other processes use the database: stop the server and its workers.")


def _load(dump: Path, tables: list[str]) -> None:
    if connection.vendor == "sqlite":
        file = Path(connection.settings_dict["NAME"])
        shutil.copymode(file, dump)
        shutil.move(dump, file)
        return
    before = dump.with_name("before.sql")  # in the same transaction; some may be newer than the backup
    before.write_text("".join(f"DROP TABLE {connection.ops.quote_name(table)} CASCADE;" for table in tables))
    run("psql", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1", f"--file={before}", f"--file={dump}")
