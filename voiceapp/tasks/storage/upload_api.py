"""The operations on uploads: send a file; or, as client libraries do, ask where to send it, and send it there."""

from __future__ import annotations

import mimetypes
from typing import Literal

from django.conf import settings
from django.http import HttpRequest
from ninja import File, Form, Query, Router, UploadedFile

from voiceapp.accounts.auth import Caller
from voiceapp.accounts.rates import rates
from voiceapp.http.schemas import CleanStr, Schema
from voiceapp.tasks import records
from voiceapp.tasks.storage import uploads
from voiceapp.tasks.storage.uploads import Policy

PATH = "/api/v1/uploads"

router = Router(tags=["Tasks"])


class PolicyKey:
    """`request.auth` of a form that brings a signed policy in the place of a key."""

    async def __call__(self, request: HttpRequest) -> Policy:
        return uploads.read(request.POST.get("policy", ""), request.POST.get("Signature", ""))


class Uploaded(Schema):
    url: str
    """`oss://…`: may stand where a task takes an address."""
    filename: str
    content_type: str
    size: int
    """Bytes."""
    expires_time: str | None
    """UTC, `YYYY-MM-DD hh:mm:ss.SSS`: it is deleted then."""


class UploadReply(Schema):
    """A file was kept."""

    output: Uploaded
    request_id: str


class PolicyQuery(Schema):
    action: Literal["getPolicy"]
    model: CleanStr = ""
    """Model that the files are for; any is accepted."""


class PolicyData(Schema):
    """Address for files, and the fields that authorize them in a form, beside `key` and `file`."""

    policy: str
    signature: str
    """Sent as `Signature`."""
    upload_dir: str
    """Beginning of `key`, before a slash and the file's name."""
    upload_host: str
    """The address of the form."""
    expire_in_seconds: int
    max_file_size_mb: int
    capacity_limit_mb: int
    oss_access_key_id: str
    """Sent as `OSSAccessKeyId`; it names no account."""
    x_oss_object_acl: str
    x_oss_forbid_overwrite: str


class PolicyReply(Schema):
    data: PolicyData
    request_id: str


class DirectForm(Schema):
    key: CleanStr
    """`upload_dir`, a slash, and the file's name."""
    policy: CleanStr
    Signature: CleanStr


@router.post("/uploads", summary="Send a file", response=UploadReply)
async def create_upload(request: HttpRequest, file: File[UploadedFile]) -> UploadReply:
    """A file for tasks to work on: recordings, pictures, lines of text. Only the account that sent it can use it."""
    caller = await _admitted(request)
    policy = uploads.new_policy(caller.account_id)
    return await _kept(request, policy, policy.key(file.name or "file"), file)


@router.get("/uploads", summary="Ask where to send files", response=PolicyReply)
async def get_policy(request: HttpRequest, query: Query[PolicyQuery]) -> PolicyReply:
    """For client libraries, which send files on their user's disk by a form of their own; good for ten minutes."""
    policy = uploads.new_policy((await _admitted(request)).account_id)
    text, signature = uploads.sign(policy)
    data = PolicyData(
        policy=text,
        signature=signature,
        upload_dir=policy.folder,
        upload_host=str(request.build_absolute_uri(f"{PATH}/direct")),
        expire_in_seconds=uploads.POLICY_S,
        max_file_size_mb=settings.MAX_UPLOAD_BYTES // 1024**2,
        capacity_limit_mb=settings.UPLOAD_QUOTA_BYTES // 1024**2,
        oss_access_key_id="policy",
        x_oss_object_acl="private",
        x_oss_forbid_overwrite="true",
    )
    return PolicyReply(data=data, request_id=request.request_id)


@router.post("/uploads/direct", summary="Send a file by a policy", response=UploadReply, auth=PolicyKey())
async def create_upload_directly(request: HttpRequest, file: File[UploadedFile], form: Form[DirectForm]) -> UploadReply:
    """The form that a policy is for; it needs no key. Afterwards the file is `oss://` and the form's `key`."""
    policy: Policy = request.auth
    await rates().admit(policy.account_id, "uploads")
    return await _kept(request, policy, form.key, file)


async def _kept(request: HttpRequest, policy: Policy, key: str, file: UploadedFile) -> UploadReply:
    filename = key.rpartition("/")[2]
    content_type = mimetypes.guess_type(filename)[0] or "application/octet-stream"
    row = await uploads.put(policy, key, file, content_type)
    output = Uploaded(
        url=f"{uploads.SCHEME}{row.key}",
        filename=filename,
        content_type=row.content_type,
        size=row.size,
        expires_time=records.clock(row.expires_at),
    )
    return UploadReply(output=output, request_id=request.request_id)


async def _admitted(request: HttpRequest) -> Caller:
    """Return the authenticated caller, whose key must have the scope `tasks`.

    Raises:
        AccessDenied: if the key may not be used for tasks.
        Throttled: if the account sends too often.
    """
    caller: Caller = request.auth
    caller.require("tasks")
    await rates().admit(caller.account_id, "uploads")
    return caller
