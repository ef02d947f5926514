"""Definitions that ship to be taken over: each file says what it is for, then, after a line of dashes, declares it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from typing import Any, NamedTuple

from threadline.capabilities.foundation.definitions.splicing import value_of

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
