"""What the browser tests need from npm: the accessibility rules, and fonts that are the same on every machine."""

from __future__ import annotations

import fcntl
import functools
import shutil
import subprocess
from pathlib import Path

from django.conf import settings

LOCKED = ("package.json", "package-lock.json")
INSTALL_S = 180


@functools.cache
def packages() -> Path:
    """The folder `node_modules` with what the lock file beside this module names, in the git-ignored var/."""
    place = Path(settings.BASE_DIR, "var", "browser-tests")
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes run at once, and one installs for all
        if not _is_installed(place):
            for name in LOCKED:
                (place / name).unlink(missing_ok=True)
                shutil.copy(Path(__file__).with_name(name), place / name)
            npm = shutil.which("npm")
            assert npm is not None, "The browser tests need npm (https://nodejs.org) on the path."
            command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            subprocess.run(command, cwd=place, check=True, timeout=INSTALL_S)
            (place / "installed").write_text(_locked())
    return place / "node_modules"


def _locked() -> str:
    return Path(__file__).with_name("package-lock.json").read_text()


def _is_installed(place: Path) -> bool:
    """Whether the packages there are those of the present lock file: an earlier checkout may have installed others."""
    installed = place / "installed"
    return installed.exists() and installed.read_text() == _locked()
