"""Files that callers send to be the input of tasks: kept for a while, and named `oss://…` where an address may be.

The name is what client libraries of the hosted service make of a file on their user's disk: they ask for a policy,
which says where to send it and proves that they may; send the file there by a form without a key; and name it in the
task. Functions here that are not asynchronous talk to the database; call them off the event loop.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.core import signing
from django.core.files.base import File
from django.db import IntegrityError, transaction
from django.utils import timezone

from voiceapp.database.thread import run_in_db_thread
from voiceapp.disk import disks
from voiceapp.errors import InvalidApiKey, InvalidParameter, Throttled
from voiceapp.tasks.models import Upload
from voiceapp.tasks.storage import files, storage_use

SCHEME = "oss://"
FOLDER = "uploads"
POLICY_S = 600
MAX_NAME = 200
MAX_UPLOADS = 1000
"""Uploads of one account at a time."""
BATCH = 500
SALT = "voiceapp.tasks.storage.uploads"
UNFIT_FOR_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Policy:
    """The right to put files into one folder, in the name of an account."""

    account_id: int
    folder: str
    """Beginning of their names, without a slash at its end."""

    def key(self, name: str) -> str:
        """The name of a file in this folder, whole."""
        return f"{self.folder}/{name}"


def new_policy(account_id: int) -> Policy:
    return Policy(account_id, f"{FOLDER}/{secrets.token_hex(16)}")


def sign(policy: Policy) -> tuple[str, str]:
    text, _, signature = signing.dumps([policy.account_id, policy.folder], salt=SALT).rpartition(":")
    return text, signature


def read(text: str, signature: str) -> Policy:
    """The upload that a policy allows.

    Raises:
        InvalidApiKey: if the policy is forged or its time is over.
    """
    try:
        account_id, folder = signing.loads(f"{text}:{signature}", salt=SALT, max_age=POLICY_S)
    except signing.BadSignature:
        raise InvalidApiKey("The policy is not one of this server's, or its time is over.") from None
    return Policy(account_id, folder)


async def put(policy: Policy, key: str, file: File, content_type: str) -> Upload:
    """Keep a file under `key`; the same file once more changes nothing, for libraries send it as often as it is named.

    The row comes first, so that the purge finds whatever lies in the storage. When this is cancelled, nothing stays.

    Raises:
        InvalidParameter: if the key lies outside the policy's folder or another file has it, or the file is empty.
        Throttled: if the account keeps as much as it may.
        DiskFull: if too little disk space is free.
    """
    name = key.removeprefix(f"{policy.folder}/")
    if name == key or not 0 < len(name) <= MAX_NAME or re.search(r"[/\\\x00-\x1f\x7f]", name):
        raise InvalidParameter(
            f"key must be {policy.folder}/ and a name without slashes, of up to {MAX_NAME} characters.", param="key"
        )
    if not file.size:
        raise InvalidParameter("file is empty.", param="file")
    ending = UNFIT_FOR_A_NAME.sub("-", name)[-80:]
    disks().require_room()
    row = Upload(
        account_id=policy.account_id,
        key=key,
        name=f"{policy.folder}/{secrets.token_hex(4)}-{ending}",
        content_type=content_type[:100],
        size=file.size,
        expires_at=timezone.now() + timedelta(hours=settings.UPLOAD_HOURS),
    )
    keeping = asyncio.create_task(_keep(row, file), name=f"upload {row.name}")
    try:
        return await asyncio.shield(keeping)
    except asyncio.CancelledError:  # its sender has left, and may send it anew
        await asyncio.wait([keeping])
        if keeping.exception() is None and keeping.result() is row:
            await _give_up(row)
        raise


async def _keep(row: Upload, file: File) -> Upload:
    """Write a row down and store its file, unless they were before: the row that there is."""
    earlier: Upload | None = await run_in_db_thread(_note, row)
    if earlier is not None:
        if await files.at_the_storage(lambda: _is_same(earlier, file)):
            return earlier
        raise InvalidParameter("Another file of this name was sent before, with the same policy.", param="key")
    try:
        # Under this very name: no other upload draws the same number.
        await files.at_the_storage(lambda: files.storage().save(row.name, file))
    except Exception:
        await run_in_db_thread(_let_go, row)  # what failed may lie there all the same: the row stays for the purge
        raise
    return row


async def _give_up(row: Upload) -> None:
    """Delete an upload that was stored; where the storage does not let it go, the next purge does."""
    await run_in_db_thread(_let_go, row)
    with suppress(OSError):
        await files.at_the_storage(lambda: files.storage().delete(row.name))
        await run_in_db_thread(_forget, [row.pk])


def find(account_id: int, address: str) -> Upload:
    """The upload that `oss://…` names.

    Raises:
        InvalidParameter: if the account has none of this name, or its time is over.
    """
    rows = Upload.objects.filter(account_id=account_id, key=address.removeprefix(SCHEME))
    row: Upload | None = rows.filter(expires_at__gt=timezone.now()).first()
    if row is None:
        raise InvalidParameter(f"There is no upload {address[:200]}; uploads are kept {settings.UPLOAD_HOURS:g} hours.")
    return row


def require_all(account_id: int, addresses: Iterable[str]) -> None:
    """Check that uploads exist, each named by its address `oss://…`.

    Raises:
        InvalidParameter: if one does not.
    """
    for address in set(addresses):
        find(account_id, address)


def purge_uploads(now: datetime, deletions: files.Deletions) -> int:
    """Delete those whose time is over; how many they were. One whose file cannot be deleted stays."""
    deleted = last = 0
    due = Upload.objects.filter(expires_at__lt=now).order_by("pk")
    while batch := list(due.filter(pk__gt=last)[:BATCH]):
        gone = [row.pk for row in batch if deletions.delete(row.name)]
        _forget(gone)
        deleted += len(gone)
        last = batch[-1].pk
    return deleted


def _let_go(row: Upload) -> None:
    """Give the key back and leave the rest to the next purge."""
    Upload.objects.filter(pk=row.pk).update(key=row.name, expires_at=timezone.now())


def _forget(rows: list[int]) -> None:
    """Delete rows, by primary key, whose files are gone."""
    with transaction.atomic():
        sizes: Counter[int] = Counter()
        # Locked: another process may be deleting the same ones, and each is given back once.
        for row in Upload.objects.select_for_update().filter(pk__in=rows):
            sizes[row.account_id] += row.size
            row.delete()
        for account_id, size in sorted(sizes.items()):
            storage_use.give_back(account_id, "upload_bytes", size)


def _note(row: Upload) -> Upload | None:
    """Write the row down, unless one with its key is there: that one.

    Raises:
        Throttled: if the account keeps as much as it may.
    """
    earlier: Upload | None = Upload.objects.filter(key=row.key).first()
    if earlier is not None:
        return earlier
    try:
        with transaction.atomic():
            if Upload.objects.filter(account_id=row.account_id).count() >= MAX_UPLOADS:
                raise Throttled(
                    f"This account keeps {MAX_UPLOADS} uploads, as many as it may; each goes after "
                    f"{settings.UPLOAD_HOURS:g} hours.",
                    code=storage_use.ALLOCATION,
                    retry_after_s=storage_use.RETRY_S,
                )
            storage_use.take(row.account_id, "upload_bytes", row.size)
            row.save(force_insert=True)
    except IntegrityError:  # sent twice at once
        earlier = Upload.objects.get(key=row.key)
    return earlier


def _is_same(row: Upload, file: File) -> bool:
    if row.size != file.size:
        return False
    try:
        with files.storage().open(row.name, "rb") as kept:
            return all(piece == kept.read(len(piece)) for piece in file.chunks())
    except FileNotFoundError:  # still on its way
        return False
