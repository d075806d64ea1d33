"""Files of tasks in a bucket of S3 or of a server that speaks like it (`requirements-s3.txt`).

Keys and the region come from where every program of that kind looks for them: `AWS_ACCESS_KEY_ID`,
`AWS_SECRET_ACCESS_KEY`, `AWS_DEFAULT_REGION`, or the machine's role.
"""

from __future__ import annotations

from typing import Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.core.files.base import File
from storages.backends.s3 import S3Storage
from storages.utils import clean_name


class Bucket(S3Storage):
    """Only this server reads it: links to its files are ours, as with a folder."""

    def get_default_settings(self) -> dict[str, Any]:
        defaults: dict[str, Any] = super().get_default_settings()
        return defaults | {
            "default_acl": None,
            "file_overwrite": False,
        }

    def __init__(self, **options: Any) -> None:
        """`bucket_name`; `location`, a folder in it; `endpoint_url` of a server that is not Amazon's."""
        config = Config(
            connect_timeout=5,
            read_timeout=60,
            signature_version="s3v4",
            # A bucket's name in the host's needs a name server that plays along; other servers have none as a rule.
            s3={"addressing_style": "path" if options.get("endpoint_url") else "auto"},
            # Checksums at the end of a body are an addition of Amazon's that other servers refuse.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        super().__init__(client_config=config, **options)

    def delete(self, name: str) -> None:
        """Delete a file; one that is gone already is no matter.

        Raises:
            OSError: if the bucket refuses, or does not answer.
        """
        try:
            super().delete(name)
        except (BotoCoreError, ClientError) as error:
            raise OSError(str(error)) from error

    def _open(self, name: str, mode: str = "rb") -> File:
        """Open a file to be read once, from its beginning, as it comes: a client that fetches a film need not wait for
        all of it here.

        Raises:
            FileNotFoundError: if it is not there.
        """
        assert mode == "rb", "what is kept is not changed"
        kept = self.bucket.Object(self._normalize_name(clean_name(name)))
        try:
            return _Kept(kept.get()["Body"], name, kept)
        except ClientError as error:  # of a class that each thread's connection makes anew
            if error.response["Error"]["Code"] != "NoSuchKey":
                raise
            raise FileNotFoundError(name) from None


class _Kept(File):
    """File in a bucket; to begin at another position, it is requested anew."""

    file: Any

    def __init__(self, body: Any, name: str, kept: Any) -> None:
        super().__init__(body, name)
        self._object = kept

    def seek(self, offset: int) -> None:
        self.file.close()
        self.file = self._object.get(Range=f"bytes={offset}-")["Body"]
