"""A bucket of S3, or of anything that speaks its protocol (`AWS_ENDPOINT_URL`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from threadline.kernel.aws_errors import error_code, explained
from threadline.kernel.errors import Forbidden, InvalidSetting, NotFound, StoreFull, ThreadlineError
from threadline.kernel.extra import from_source
from threadline.kernel.object_storage import Stored

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_DELETED_AT_ONCE = 1_000
"""The most that S3 takes."""
_ABSENT = ("NoSuchKey", "404", "NotFound")
_TAKEN = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
"""Somebody else has written the object, before or at this moment."""
_FULL = ("QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage", "507")


class BucketStorage:
    """The objects of a bucket below a prefix. `replace` is S3's conditional write."""

    def __init__(self, client: S3Client, bucket: str, prefix: str = "") -> None:
        self._client = client
        self._bucket = bucket
        self._below = f"{prefix}/" if prefix else ""

    @classmethod
    def open(cls, bucket: str, prefix: str) -> BucketStorage:
        """A bucket by the credentials of the environment. Raises `InvalidSetting`."""
        try:
            import boto3
        except ImportError:
            hint = from_source("aws")
            raise InvalidSetting("S3 cannot be used: boto3 is not installed", hint=hint) from None
        if not bucket:
            raise InvalidSetting("this URL names no bucket", hint="write s3://bucket/prefix")
        return cls(boto3.session.Session().client("s3"), bucket, prefix)

    def read(self, name: str) -> bytes:
        """See `Storage.read`."""
        tagged = self.tagged(name)
        if tagged is None:
            raise NotFound(f"there is no {self.url(name)}")
        return tagged[0]

    def tagged(self, name: str) -> tuple[bytes, str] | None:
        """See `Storage.tagged`: the tag is S3's own."""
        with self._errors("s3:GetObject", name, "s3:ListBucket"):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=self._below + name)
                return answer["Body"].read(), answer["ETag"]
            except self._client.exceptions.ClientError as error:
                if error_code(error) in _ABSENT:
                    return None
                raise

    def write(self, name: str, content: bytes) -> None:
        """See `Storage.write`."""
        self._put(name, content)

    def replace(self, name: str, content: bytes, expected_tag: str) -> str | None:
        """See `Storage.replace`."""
        return self._put(name, content, **({"IfMatch": expected_tag} if expected_tag else {"IfNoneMatch": "*"}))

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """See `Storage.list`."""
        with self._errors("s3:ListBucket", prefix):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self._bucket, Prefix=self._below + prefix):
                for entry in page.get("Contents", ()):
                    name = entry["Key"].removeprefix(self._below)
                    yield Stored(name, entry["Size"], entry["LastModified"].timestamp())

    def delete(self, names: Iterable[str]) -> None:
        """See `Storage.delete`."""
        wanted = list(names)
        for start in range(0, len(wanted), _DELETED_AT_ONCE):
            page = wanted[start : start + _DELETED_AT_ONCE]
            with self._errors("s3:DeleteObject", page[0]):
                objects = [{"Key": self._below + name} for name in page]
                answer = self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True})  # type: ignore[typeddict-item, unused-ignore]
            for failed in answer.get("Errors", ()):
                error = self._client.exceptions.ClientError({"Error": failed}, "DeleteObjects")
                raise self._refusal(error, "s3:DeleteObject", failed.get("Key", ""))

    def url(self, name: str = "") -> str:
        """See `Storage.url`."""
        return f"s3://{self._bucket}/{self._below}{name}".rstrip("/")

    def _put(self, name: str, content: bytes, **condition: str) -> str | None:
        """The tag of the written object; None if the condition does not hold."""
        with self._errors("s3:PutObject", name):
            try:
                put: Any = self._client.put_object
                answer = put(Bucket=self._bucket, Key=self._below + name, Body=content, **condition)
            except self._client.exceptions.ClientError as error:
                if condition and error_code(error) in (*_TAKEN, *_ABSENT):
                    return None
                raise
        tag: str = answer["ETag"]
        return tag

    @contextmanager
    def _errors(self, permission: str, name: str, *more: str) -> Iterator[None]:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise self._refusal(error, permission, name, *more) from None

    def _refusal(self, error: Exception, permission: str, name: str, *more: str) -> ThreadlineError:
        """What an operator has to do; ``permission`` is S3's name of it, which is not that of the operation."""
        code, explanation = error_code(error), explained(error, "s3", self.url(name))
        if code == "NoSuchBucket":
            return InvalidSetting(f"there is no bucket {self._bucket!r}", hint="Create it, or name another.")
        if code in _FULL:
            return StoreFull(f"{self.url(name)}: {code}", hint="Make room, or raise the quota; then sync again.")
        if isinstance(explanation, Forbidden):
            hint = f"Allow {' and '.join([permission, *more])} on this bucket and what lies in it."
            return Forbidden(f"permission {permission} is missing: {self.url(name)}: {code}", hint=hint)
        return explanation
