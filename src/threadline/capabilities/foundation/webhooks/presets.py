"""The destinations that ship, each a text for the section ``destinations``."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from threadline.capabilities.foundation.definitions.ready_made import ready_made_files


class Preset(NamedTuple):
    """A destination that ships."""

    name: str
    title: str
    description: str
    needs: list[str]
    """The members of the payload that its templates take."""
    variables: dict[str, str]
    """An environment variable, and what it has to hold."""
    text: str
    """What stands under its name in a file."""


@cache
def presets() -> tuple[Preset, ...]:
    """Every preset, in its order."""
    files = ready_made_files(__name__.rpartition(".")[0])
    return tuple(
        Preset(name, says["title"], says["description"], says["needs"], says["variables"], text)
        for name, says, text in files
    )
