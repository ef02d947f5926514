"""The ledger beside an embedded store: it outlives the store's file, so that no backup brings anybody back."""

from __future__ import annotations

import os
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from threadline.engine.erasure.certificates import read
from threadline.kernel.errors import StoreDamaged
from threadline.kernel.personal import Copy

ENDING = "-erasures.jsonl"
"""Of its name, after that of the store."""


class Entry(NamedTuple):
    """An erasure that is done, and the ids of the events that it has taken out of the log."""

    certificate: bytes
    ids: Sequence[str]

    @property
    def name(self) -> tuple[str, str]:
        """Its workspace and its id."""
        certificate = read(self.certificate)
        return certificate.workspace, certificate.erasure


class _Line(msgspec.Struct, omit_defaults=True):
    key: str = ""
    certificate: msgspec.Raw = msgspec.Raw()
    ids: str = ""


_line = msgspec.json.Decoder(_Line)


class LedgerFile:
    """Lines of JSON: keys of pseudonyms, and certificates with the ids of their events. Nobody is named in it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def beside(cls, store: Path) -> LedgerFile:
        """The file that belongs to a store."""
        return cls(store.with_name(store.name + ENDING))

    def read(self) -> tuple[list[bytes], list[Entry]]:
        """The keys and the erasures. A last line that a killed process has begun is left out."""
        keys: list[bytes] = []
        entries: list[Entry] = []
        content = self.path.read_bytes() if self.path.exists() else b""
        for number, text in enumerate(content.split(b"\n")[:-1], 1):
            try:
                line = _line.decode(text)
                if line.key:
                    keys.append(bytes.fromhex(line.key))
                else:
                    entries.append(Entry(bytes(line.certificate), unpacked_ids(line.ids)))
                    read(entries[-1].certificate)
            except (msgspec.MsgspecError, ValueError) as error:
                raise StoreDamaged(
                    f"line {number} of {self.path} cannot be read: {error}",
                    hint="The ledger of erasures is there so that nobody who was erased comes back: put it right from "
                    "a copy of it. `threadline erasures export` writes what the store itself has.",
                ) from error
        return keys, entries

    def add(self, keys: Iterable[bytes], entries: Iterable[Entry]) -> None:
        """Append what is not there yet, durably. Only one process writes to an embedded store, so to this as well."""
        known_keys, known = self.read()
        names = {entry.name for entry in known}
        lines = [_Line(key=key.hex()) for key in keys if key not in known_keys]
        lines += [
            _Line(certificate=msgspec.Raw(entry.certificate), ids=packed_ids(entry.ids))
            for entry in entries
            if entry.name not in names
        ]
        if not lines:
            return
        is_new = not self.path.exists()
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "r+b") as file:
            # What a killed process has begun is no line.
            file.truncate(file.read().rfind(b"\n") + 1)
            file.seek(0, os.SEEK_END)
            file.write(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            _sync_folder(self.path.absolute().parent)


def packed_ids(ids: Sequence[str]) -> str:
    """Ids as one text."""
    return b64encode(b"".join(map(bytes.fromhex, ids))).decode()


def unpacked_ids(text: str) -> list[str]:
    """The ids of a text."""
    packed = b64decode(text)
    return [packed[at : at + 16].hex() for at in range(0, len(packed), 16)]


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


COPY = Copy("the ledger file", why="it has pseudonyms, hashes and counts, which name nobody")
