"""Documents of agents: Markdown and text files, the same for all processes, and never changed once they are kept."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp

from django.conf import settings
from django.core.exceptions import ValidationError

from voiceapp.agents.models import DocumentSet

SUFFIXES = (".md", ".txt")
MAX_BYTES = 500_000
"""Length of all documents of one agent."""
MAX_FILES = 100


def kept(files: Mapping[str, bytes]) -> str:
    """Keep documents by name; return their digest, which is empty without any.

    Raises:
        ValidationError: if there is too much of them, or one is not a text.
    """
    if sum(map(len, files.values())) > MAX_BYTES or len(files) > MAX_FILES:
        raise ValidationError(f"An agent may have {MAX_FILES} documents with {MAX_BYTES} bytes in all.")
    texts: dict[str, str] = {}
    for name, content in sorted(files.items()):
        if not name.lower().endswith(SUFFIXES) or name.startswith(".") or Path(name).name != name or len(name) > 100:
            raise ValidationError(f"{name[:100]}: a document is a file whose name ends with .md or .txt.")
        try:
            texts[name] = content.decode("utf-8-sig").replace("\0", "")
        except UnicodeDecodeError:
            raise ValidationError(f"{name}: write it in UTF-8.") from None
    if not texts:
        return ""
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:32]
    DocumentSet.objects.get_or_create(digest=digest, defaults={"texts": texts})
    return digest


def texts_of(digest: str) -> dict[str, str]:
    """Return documents by name."""
    found = DocumentSet.objects.filter(digest=digest).first() if digest else None
    return dict(found.texts) if found else {}


def folder_of(digest: str) -> str:
    """Return a folder of this machine with documents in it; empty without any."""
    if not digest:
        return ""
    folder = Path(settings.VAR_DIR, "agents", digest)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(mkdtemp(dir=folder.parent))
        for name, text in texts_of(digest).items():
            (fresh / name).write_text(text, encoding="utf-8")
        try:
            os.rename(fresh, folder)
        except OSError:  # another process was faster
            shutil.rmtree(fresh)
    return str(folder)
