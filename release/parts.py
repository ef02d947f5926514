"""The parts that an installation pulls in: which, by their metadata; versions and hashes, by the lock."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, NamedTuple

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements" / "test.txt"
"""The lock that has every extra."""
NOT_SHIPPED = frozenset({"test", "dev", "bench", "docs", "spark"})
"""Extras for whoever works on Threadline itself; and Spark, which has a lock of its own and is installed beside."""

_PINNED = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?==(?P<version>[^ ;\\]+)( ; (?P<marker>[^\\]+))?", re.MULTILINE
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_ON = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.11.9",
    "python_version": "3.11",
    "sys_platform": "linux",
}
"""Whatever machine asks, the answer is for this one."""
_SPDX = {
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "zlib/libpng License": "Zlib",
}


class Pin(NamedTuple):
    """What the lock says of a part."""

    version: str
    hashes: tuple[str, ...]
    """SHA-256 of every file of that version."""


class Part(NamedTuple):
    """Something that is installed with Threadline."""

    name: str
    pin: Pin
    licences: tuple[str, ...]
    needs: tuple[str, ...]
    """Names of parts that it needs."""
    extras: tuple[str, ...]
    """Extras that bring it; empty: every installation has it."""


@lru_cache
def locked() -> Mapping[str, Pin]:
    """The lock, by name."""
    text = LOCK.read_text()
    starts = list(_PINNED.finditer(text))
    ends = [*(each.start() for each in starts[1:]), len(text)]
    return {
        canonicalize_name(each["name"]): Pin(each["version"], tuple(_HASH.findall(text, each.end(), end)))
        for each, end in zip(starts, ends, strict=True)
        # A part may be locked in one version for older Pythons and in another for newer ones.
        if each["marker"] is None or Marker(each["marker"].strip()).evaluate()
    }


def project() -> dict[str, Any]:
    """What `pyproject.toml` says of the project."""
    declared: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return declared


def shipped_parts() -> list[Part]:
    """Every part, by name: those of every installation, and those of extras."""
    declared = project()
    extras = {name: texts for name, texts in declared["optional-dependencies"].items() if name not in NOT_SHIPPED}
    always = _closure(declared["dependencies"])
    brought: dict[str, set[str]] = {}
    for extra, texts in extras.items():
        for name in _closure(texts) - always:
            brought.setdefault(name, set()).add(extra)
    names = sorted(always | brought.keys())
    return [_part(name, tuple(sorted(brought.get(name, ()))), frozenset(names)) for name in names]


def _part(name: str, extras: tuple[str, ...], known: frozenset[str]) -> Part:
    pin = locked().get(name)
    if pin is None:
        raise SystemExit(f"{name} is not in {LOCK.relative_to(ROOT)}: `make lock` resolves it")
    installed = distribution(name).version
    if installed != pin.version:
        raise SystemExit(f"{name} {installed} is installed and {pin.version} is locked: `make setup` installs the lock")
    return Part(name, pin, _licences(name), tuple(sorted(_needed(name, ()) & known)), extras)


def _closure(texts: Iterable[str]) -> set[str]:
    """The names that these requirements lead to."""
    names: set[str] = set()
    waiting = [each for each in map(Requirement, texts) if _applies(each, ())]
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        one = waiting.pop()
        name, extras = canonicalize_name(one.name), tuple(sorted(one.extras))
        names.add(name)
        if (name, extras) not in seen:
            seen.add((name, extras))
            waiting += _requirements(name, extras)
    return names


def _needed(name: str, extras: tuple[str, ...]) -> set[str]:
    return {canonicalize_name(each.name) for each in _requirements(name, extras)}


def _requirements(name: str, extras: tuple[str, ...]) -> list[Requirement]:
    try:
        texts = distribution(name).requires or []
    except PackageNotFoundError:
        raise SystemExit(f"{name} is not installed: `make setup` installs all that is locked") from None
    return [each for each in map(Requirement, texts) if _applies(each, extras)]


def _applies(one: Requirement, extras: tuple[str, ...]) -> bool:
    return one.marker is None or any(one.marker.evaluate({**_ON, "extra": extra}) for extra in (*extras, ""))


def _licences(name: str) -> tuple[str, ...]:
    """The licences that a part names: an SPDX expression, else those of its classifiers, else its own words."""
    metadata = distribution(name).metadata
    if "License-Expression" in metadata:
        return (metadata["License-Expression"],)
    classified = [each.rpartition(" :: ")[2] for each in metadata.get_all("Classifier") or () if "License ::" in each]
    known = sorted({_SPDX.get(each, each) for each in classified if each != "OSI Approved"})
    words = metadata["License"].strip().partition("\n")[0] if "License" in metadata else ""
    return tuple(known) or (_SPDX.get(words, words) or "not named",)
