"""What the lake asks of a storage: whole objects under names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol


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

    def write_new(self, name: str, content: bytes) -> bool:
        """Write an object that is not there yet; False, with nothing written, if it is."""
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
