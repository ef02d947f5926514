"""The destinations that ship: each file says what it is for, then, after a line of dashes, how it is declared."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.kernel.errors import NotFound
from threadline.kernel.suggestion import suggestion

_FILES = resources.files(__name__.rpartition(".")[0]) / "files"
_BETWEEN = "\n---\n"


class Preset(NamedTuple):
    """A destination that ships."""

    name: str
    title: str
    description: str
    order: int
    needs: list[str]
    """The members of the payload that its templates take."""
    variables: dict[str, str]
    """An environment variable, and what it has to hold."""
    text: str
    """What stands under its name in a file."""


@cache
def presets() -> tuple[Preset, ...]:
    """Every preset, in its order."""
    files = (file for file in _FILES.iterdir() if file.name.endswith(".yaml"))
    made = [_preset(file.name.removesuffix(".yaml"), file.read_text(encoding="utf-8")) for file in files]
    return tuple(sorted(made, key=lambda preset: preset.order))


def _preset(name: str, content: str) -> Preset:
    head, _, text = content.partition(_BETWEEN)
    says: dict[str, Any] = value_of(head)
    return Preset(name, says["title"], says["description"], says["order"], says["needs"], says["variables"], text)


def preset_named(name: str) -> Preset:
    """The preset of this name; raises `NotFound` with the nearest one."""
    preset = next((preset for preset in presets() if preset.name == name), None)
    if preset is None:
        hint = suggestion(name, [preset.name for preset in presets()])
        raise NotFound(f"there is no ready-made destination {name[:64]!r}; {hint}", param="name")
    return preset
