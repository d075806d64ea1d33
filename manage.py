#!/usr/bin/env python3
"""Command-line entry point of the project."""

import os
import sys


def main() -> None:
    """Run a command. Operators' mistakes are told in a sentence; `--traceback` shows where they were noticed."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "voiceapp.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"{error}")
    except OperationalError as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"The database does not answer: {error}. Check DATABASE_URL and its server, and `manage.py migrate`.")


if __name__ == "__main__":
    main()
