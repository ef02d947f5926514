"""The files of definitions of a server, into which a definition is written that is put in force from outside."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.splicing import spliced
from threadline.kernel.errors import Conflict
from threadline.settings import Settings, definition_files, definitions_file
from threadline.settings.loading import definitions_beside

NEW_FILE = "proposed.yaml"
"""In a folder of definitions: takes in what no other file has."""
_BY_HAND = "put the definition into a file of definitions, then reload them"


class DefinitionFiles:
    """Where a server has its definitions."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()

    @contextmanager
    def writing(self, section: str, name: str, text: str) -> Iterator[None]:
        """Have a definition in a file, in the place of the one of its name. Whatever is raised within puts it back.

        Raises `Conflict` where a file cannot be written.
        """
        with self._lock:
            file = self._file(section, name)
            before = file.read_text(encoding="utf-8") if file.exists() else None
            made = spliced(before or "", (section, name), text)
            if made is None:
                raise Conflict(f"{file.name} is written in a way that only a person can add to", hint=_BY_HAND)
            try:
                _write(file, made)
                yield
            except BaseException:
                with suppress(Conflict):
                    _put_back(file, before)
                raise

    def _file(self, section: str, name: str) -> Path:
        path = definitions_file(self._settings)
        if path is None:
            return definitions_beside(self._settings)
        if path.is_file():
            return path.resolve()
        for file in definition_files(path):
            declared = Definitions([("", file.read_text(encoding="utf-8"))]).declared_in("")
            if name in declared.get(section, ()):
                return file.resolve()
        return path / NEW_FILE


def _put_back(file: Path, before: str | None) -> None:
    if before is None:
        file.unlink(missing_ok=True)
    else:
        _write(file, before)


def _write(file: Path, text: str) -> None:
    """Whole or not at all, where the folder may be written to; else into the file itself, as in a container."""
    aside = file.with_name(f".{file.name}.new")
    try:
        try:
            aside.write_text(text, encoding="utf-8")
            if file.exists():
                shutil.copymode(file, aside)
            os.replace(aside, file)
        except OSError:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Conflict(f"{file} cannot be written: {error.strerror}", hint=_BY_HAND) from None
