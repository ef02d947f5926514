"""The templates in force, ready to be filled in, and those of earlier versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.reach.mail.definition import SHARED, Mail, Template
from threadline.capabilities.reach.mail.rendering import Compiled, compiled, restored
from threadline.capabilities.reach.mail.sources import read_sources
from threadline.kernel.applied import DefinitionHistory
from threadline.kernel.errors import InvalidDefinition, NotFound
from threadline.kernel.policy import Declared
from threadline.kernel.suggestion import suggestion

CONSENT = "consent"
"""The section in which topics are declared."""


class Templates:
    """What is declared about mail, with its templates compiled."""

    def __init__(self, mail: Mail, made: Mapping[str, Compiled]) -> None:
        self.mail = mail
        self._made = dict(made)

    def __iter__(self) -> Iterator[Compiled]:
        return iter(self._made.values())

    def named(self, name: str) -> Compiled:
        """The template in force of this name; raises `NotFound` with the nearest one."""
        made = self._made.get(name)
        if made is None:
            hint = suggestion(name, self._made) if self._made else "none is declared"
            raise NotFound(f"there is no mail template {name[:64]!r}; {hint}")
        return made

    def of_version(self, history: DefinitionHistory, name: str, version: str) -> Compiled:
        """A template as it was in a version; raises `NotFound` if that was never declared."""
        current = self._made.get(name)
        if current is not None and current.version == version:
            return current
        number = number_of(version)
        packed = history.content(SHARED, name, number) if number else None
        if packed is None:
            raise NotFound(f"the mail template {name[:64]!r} never had the version {version[:64]!r}")
        template = Template(name=name, subject="") if current is None else current.template
        return restored(template, packed)

    @property
    def declared(self) -> tuple[Declared, ...]:
        """Each template as a version that never changes: its number is its hash."""
        return tuple(
            Declared(made.template.name, number_of(made.version), made.sources.packed, made.template.place)
            for made in self._made.values()
        )

    def reread(self, name: str) -> Compiled:
        """The template of files as they are now, while they are being written. Raises `InvalidDefinition`."""
        template = self.named(name).template
        return compiled(template, read_sources(template))


def number_of(version: str) -> int:
    """The number under which a version is kept; 0 for what is none."""
    try:
        return int(version, 16) if len(version) == 14 else 0
    except ValueError:
        return 0


def version_of(number: int) -> str:
    """The version that a number stands for; empty for 0."""
    return f"{number:014x}" if number else ""


def read_templates(definitions: Definitions, mail: Mail) -> Templates:
    """The declared templates. Problems are noted, not raised."""
    made = {}
    for name, template in sorted(mail.templates.items()):
        try:
            made[name] = compiled(template, read_sources(template))
        except InvalidDefinition as error:
            definitions.problems += str(error).split("\n")
    return Templates(mail, made)
