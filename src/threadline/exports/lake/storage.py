"""Object storage by its URL: a local folder, or a bucket of S3."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from threadline.exports.lake.folder import FolderStorage
from threadline.exports.lake.s3 import BucketStorage
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.object_storage import Storage, Stored

__all__ = ["Storage", "Stored", "open_storage"]


def open_storage(url: str) -> Storage:
    """The storage of a path, of ``file:///path`` or of ``s3://bucket/prefix``. Raises `InvalidSetting`."""
    parts = urlsplit(url)
    if parts.scheme == "s3":
        return BucketStorage.open(parts.netloc, unquote(parts.path).strip("/"))
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return FolderStorage(Path(unquote(parts.path)))
    if not url or "://" in url:
        hint = "write a path, file:///path or s3://bucket/prefix"
        raise InvalidSetting(f"{url[:200]!r} is no storage that Threadline writes to", hint=hint)
    return FolderStorage(Path(url))
