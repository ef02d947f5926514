"""Definitions that ship to be taken over: each file says what it is for, then, after a line of dashes, declares it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Any, NamedTuple, Protocol, TypeVar

from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.kernel.errors import NotFound
from threadline.kernel.suggestion import suggestion

_BETWEEN = "\n---\n"


class ReadyMadeFile(NamedTuple):
    """A file that ships."""

    name: str
    says: dict[str, Any]
    """What it says of itself."""
    text: str
    """What it declares."""


def ready_made_files(package: str) -> Iterator[ReadyMadeFile]:
    """The files in the folder ``files`` of a package, in the order that they give themselves."""
    files = (file for file in (resources.files(package) / "files").iterdir() if file.name.endswith(".yaml"))
    made = [_file(file.name.removesuffix(".yaml"), file.read_text(encoding="utf-8")) for file in files]
    return iter(sorted(made, key=lambda file: int(file.says["order"])))


def _file(name: str, content: str) -> ReadyMadeFile:
    head, _, text = content.partition(_BETWEEN)
    says: dict[str, Any] = value_of(head)
    return ReadyMadeFile(name, says, text)


class _HasName(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_HasName)


def ready_made_named(entries: Sequence[N], name: str, otherwise: str) -> N:
    """The entry of this name; raises `NotFound`, which begins with ``otherwise``, with the nearest one."""
    entry = next((entry for entry in entries if entry.name == name), None)
    if entry is None:
        known = [entry.name for entry in entries]
        raise NotFound(f"{otherwise} {name[:64]!r}; {suggestion(name, known)}", param="name")
    return entry
