"""The files of a template: each is read once, with all that it includes, so that sending a mail opens no file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from threadline.capabilities.reach.mail.definition import FILE, Template
from threadline.capabilities.reach.mail.filling import joined
from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.limits import MAIL_TEMPLATE_BYTES_MAX

_REFERENCE = re.compile(r"\{%-?\s*(extends|include|import|from)\s+([^%\s]+)")
_QUOTED = re.compile(r"""(["'])([^"']+)\1""")


class Sources(NamedTuple):
    """What a template is made of, as it was read."""

    parts: Mapping[str, str]
    """Part (``subject``, ``html``, ``mjml``, ``text``) -> the name of its source."""
    texts: Mapping[str, str]
    """Name -> source; of a file the name is its path beside the definitions."""
    places: Mapping[str, tuple[str, int]]
    """Name -> file and the number of the line before its first."""

    @property
    def version(self) -> str:
        """A hash of all of it."""
        return blake2b(self.packed, digest_size=7).hexdigest()

    @property
    def packed(self) -> bytes:
        """All of it, to be kept."""
        return canonical_json({"parts": dict(self.parts), "texts": dict(self.texts)})

    def place(self, name: str, line: int) -> str:
        """File and line of a line of a source."""
        file, before = self.places.get(name, (name, 0))
        return f"{file}:{before + line}"


def read_sources(template: Template) -> Sources:
    """Read the files of a template. Raises `InvalidDefinition` with every problem, one a line."""
    folder = Path(template.place.rpartition(":")[0]).parent
    parts: dict[str, str] = {}
    texts: dict[str, str] = {}
    places: dict[str, tuple[str, int]] = {}
    problems: list[str] = []
    waiting: list[tuple[str, str]] = []
    for part, (source, place) in template.parts.items():
        if part != "subject" and FILE.fullmatch(source):
            parts[part] = posixpath.normpath(source)
            waiting.append((parts[part], place))
        else:
            # Without a slash: what it includes is named from the folder of the definitions.
            parts[part] = f"{template.name}: {part}"
            texts[parts[part]] = source
            file, _, line = place.rpartition(":")
            places[parts[part]] = (file, int(line or 1) - (0 if "\n" in source else 1))
            waiting += _references(source, "", place, problems)
    while waiting:
        name, place = waiting.pop()
        if name in texts:
            continue
        try:
            # Nothing outside the folder of the definitions becomes part of a mail.
            if name.startswith(("/", "..")):
                raise OSError("it lies outside the folder of the definitions")
            texts[name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            problems.append(f"{place}: template {template.name!r}: file {name!r} cannot be read: {why}")
            continue
        places[name] = (str(folder / name), 0)
        waiting += _references(texts[name], name, str(folder / name), problems)
    if sum(len(text.encode()) for text in texts.values()) > MAIL_TEMPLATE_BYTES_MAX:
        problems.append(f"{template.place}: template {template.name!r} has more than {MAIL_TEMPLATE_BYTES_MAX:,} bytes")
    if problems:
        raise InvalidDefinition("\n".join(problems))
    return Sources(parts, texts, places)


def _references(text: str, name: str, place: str, problems: list[str]) -> list[tuple[str, str]]:
    """The files that a source extends, includes or imports, each with the place where it says so."""
    references = []
    for match in _REFERENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        here = f"{place}:{line}" if name else place
        quoted = _QUOTED.fullmatch(match[2])
        if quoted is None:
            problems.append(f"{here}: `{match[1]}` needs the name of a file in quotes, and {match[2][:80]} is none")
        else:
            references.append((joined(quoted[2], name), here))
    return references
