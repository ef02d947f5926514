"""The port of object storage, such as a folder or a bucket: whole objects under names."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

_PATH_LENGTH_MAX = 120
_SAFE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")


class Stored(NamedTuple):
    """An object as a listing shows it."""

    name: str
    bytes: int
    modified: float
    """Seconds since 1970, by the clock of the storage."""


class Storage(Protocol):
    """Objects under names such as ``raw/a/b.parquet``. An object is there whole or not at all."""

    def read(self, name: str) -> bytes:
        """The content of an object. Raises `NotFound`."""
        ...

    def tagged(self, name: str) -> tuple[bytes, str] | None:
        """The content of an object and its tag for `replace`; None if there is none."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write an object, whatever was there before. Durable when it returns."""
        ...

    def replace(self, name: str, content: bytes, expected_tag: str) -> str | None:
        """Write an object if its tag is still this one ("": if it is absent): its new tag; None if it is not."""
        ...

    def list(self, prefix: str = "") -> Iterator[Stored]:
        """The objects whose names begin with this, in the order of their names."""
        ...

    def delete(self, names: Iterable[str]) -> None:
        """Remove objects; those that are not there are passed over."""
        ...

    def url(self, name: str = "") -> str:
        """Where other engines find an object: a path, or ``s3://bucket/…``."""
        ...


def path_name(text: str) -> str:
    """A text as the name of one folder: itself, or with ``~`` and hex digits for what no path should contain."""
    if is_path_name(text):
        return text
    name = "".join(c if _SAFE.fullmatch(f"_{c}") else f"~{ord(c):x}." for c in text)
    name = f"~2e.{name[1:]}" if name.startswith(".") else name
    return name if len(name) <= _PATH_LENGTH_MAX else f"{name[:80]}~{path_hash(text)}"


def is_path_name(text: str) -> bool:
    """Whether a text can name a folder as it is."""
    return _SAFE.fullmatch(text) is not None and len(text) <= _PATH_LENGTH_MAX


def path_hash(text: str) -> str:
    """A hash for the end of a name that was cut."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
