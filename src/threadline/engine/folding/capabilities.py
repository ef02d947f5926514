"""Which capabilities are in force: those that ship, those that are installed or named, less what is switched off."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import NamedTuple

from threadline.kernel.capability import Capability
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.lists import comma_separated
from threadline.kernel.suggestion import suggestion

SHIPPED = "threadline.capabilities"
"""The package of what ships; a distribution's entry points stand in the group of the same name."""
_OFF = "-"


class Capabilities(NamedTuple):
    """What is in force, and what is there and switched off, by name."""

    on: tuple[Capability, ...]
    off: tuple[Capability, ...] = ()
    given: tuple[Capability, ...] = ()
    """Those of them that the program itself has given, which no setting names."""


@cache
def shipped() -> tuple[Capability, ...]:
    """Those that ship, by name: each folder of a wing declares its own."""
    modules = (module for wing in _within(importlib.import_module(SHIPPED)) for module in _within(wing))
    return tuple(sorted((declared_in(module) for module in modules), key=lambda capability: capability.name))


def _within(package: ModuleType) -> list[ModuleType]:
    return [
        importlib.import_module(f"{package.__name__}.{info.name}") for info in pkgutil.iter_modules(package.__path__)
    ]


def declared_in(module: ModuleType) -> Capability:
    """The capability that a module declares. Raises `InvalidSetting` unless it is exactly one."""
    declared = [value for value in vars(module).values() if isinstance(value, Capability)]
    if len(declared) != 1:
        raise InvalidSetting(f"capabilities: {module.__name__} declares {len(declared)} capabilities; expected one")
    return declared[0]


def chosen(setting: str = "", given: Sequence[Capability] = ()) -> Capabilities:
    """What is in force by the setting ``capabilities``, with what the program itself has ``given``.

    The setting is a list: ``-name`` switches one off; ``package.module`` adds one of your own. Raises `InvalidSetting`
    for a name that is none, for a package that cannot be imported, and where something that is on needs what is off.
    """
    parts = comma_separated(setting)
    off = {part.removeprefix(_OFF).strip() for part in parts if part.startswith(_OFF)}
    added = [_imported(part) for part in parts if not part.startswith(_OFF)]
    known: dict[str, Capability] = {}
    for capability in (*shipped(), *_installed(off), *given, *added):
        other = known.setdefault(capability.name, capability)
        if other != capability:
            raise InvalidSetting(
                f"capabilities: two are named {capability.name!r}, of {other.package} and of {capability.package}",
                hint="Take one of them out; a name stands for one capability.",
            )
    absent = off - known.keys() - {point.name for point in _entry_points()}
    if absent:
        name = min(absent)
        raise InvalidSetting(f"capabilities: there is none named {name!r}; {suggestion(name, known)}")
    on = [capability for name, capability in sorted(known.items()) if name not in off]
    _refuse_needed(known, off, on)
    return Capabilities(tuple(on), tuple(known[name] for name in sorted(off & known.keys())), tuple(given))


def installed(setting: str = "") -> Capabilities:
    """Whatever is there by this setting, as if nothing was switched off; without a mistake in the setting, which
    whoever opens a store hears of. For what is asked before there is a store, such as which commands there are."""
    try:
        selected = chosen(setting)
    except InvalidSetting:
        return Capabilities(shipped())
    return Capabilities(tuple(sorted((*selected.on, *selected.off), key=lambda capability: capability.name)))


def _refuse_needed(known: dict[str, Capability], off: set[str], on: Iterable[Capability]) -> None:
    """Raise `InvalidSetting` where something that is on needs what is off, or is not there."""
    for name in sorted(off & known.keys()):
        if known[name].is_core:
            raise InvalidSetting(f"capabilities: {name!r} is what Threadline itself relies on; it is always on")
    for capability in on:
        for need in sorted(capability.needs - known.keys()):
            raise InvalidSetting(f"capabilities: {capability.name!r} needs {need!r}, which is not there")
        for need in sorted(capability.needs & off):
            raise InvalidSetting(
                f"capabilities: {capability.name!r} needs {need!r}, which is switched off",
                hint=f"Switch both off (-{capability.name}, -{need}), or leave {need} on.",
            )


def _imported(path: str) -> Capability:
    try:
        return declared_in(importlib.import_module(path))
    except ImportError as error:
        raise InvalidSetting(
            f"capabilities: {path!r} cannot be imported: {error}",
            hint="Name a module of this interpreter, such as shop.chats; -name switches a capability off.",
        ) from None


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    """What distributions declare, by name. What is installed does not change while a process lives."""
    return tuple(sorted(entry_points(group=SHIPPED), key=lambda point: point.name))


def _installed(off: Iterable[str]) -> Iterator[Capability]:
    for point in _entry_points():
        try:
            capability = point.load()
        except Exception as error:  # whatever the code of others raises on import
            if point.name in off:
                continue
            raise InvalidSetting(
                f"capabilities: {_named(point)} cannot be loaded: {error}",
                hint=f"Uninstall it, or switch it off with -{point.name}.",
            ) from error
        if not isinstance(capability, Capability) or capability.name != point.name:
            raise InvalidSetting(f"capabilities: {_named(point)} is no Capability of this name, but {capability!r}")
        yield capability


def _named(point: EntryPoint) -> str:
    distribution = point.dist
    return f"{point.name!r}" + ("" if distribution is None else f" of the distribution {distribution.name}")
