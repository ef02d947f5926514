"""Zones: the names of the IANA time zone database, offsets, and which of them are one zone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import resources
from zoneinfo import ZoneInfo

NAME_LENGTH_MAX = 64

_FIXED = re.compile(r"([+-])([01]\d):([0-5]\d)", re.ASCII)
_LEAST, _MOST = timedelta(hours=-12), timedelta(hours=14)
"""No clock on earth is further behind or ahead."""
_NO_PLACE = frozenset({"Factory"})
"""Names in the database that stand for a clock which nobody has set."""
_PLAIN = frozenset({"Etc/UTC", "Etc/GMT"})
"""Two zones of the database that differ in what they call themselves only; here both are ``UTC``."""


@lru_cache(maxsize=1)
def zone_names() -> Mapping[str, str]:
    """Every name of a zone of the IANA database, and the one that the zone goes by.

    Both are read from the package ``tzdata``: what an operating system has besides, such as ``localtime`` or
    ``right/UTC``, means something else on every machine. A former or other name goes by the one that it links to,
    ``Asia/Calcutta`` by ``Asia/Kolkata``. A name that the database lists for a place stands for itself, even where its
    clocks are those of another: Oslo is not Berlin.
    """
    package = resources.files("tzdata")
    names, rules, table = (
        package.joinpath(*path).read_text(encoding="utf-8").splitlines()
        for path in (("zones",), ("zoneinfo", "tzdata.zi"), ("zoneinfo", "zone.tab"))
    )
    links = {name: target for _, target, name in (line.split() for line in rules if line[:2] == "L ")}
    places = {line.split("\t")[2] for line in table if line and line[0] != "#"}

    def goes_by(name: str) -> str:
        while name not in places and name in links:
            name = links[name]
        return "UTC" if name in _PLAIN else name

    return {name: goes_by(name) for name in names if name not in _NO_PLACE}


@lru_cache(maxsize=4_096)
def zone_of(name: str) -> tzinfo | None:
    """The zone of an IANA name such as ``Europe/Rome``, or of an offset such as ``+05:30``; None for any other text.

    Offsets reach from ``-12:00`` to ``+14:00``.
    """
    if len(name) > NAME_LENGTH_MAX:
        return None
    fixed = _FIXED.fullmatch(name)
    if fixed is not None:
        size = timedelta(hours=int(fixed[2]), minutes=int(fixed[3])) * (-1 if fixed[1] == "-" else 1)
        return timezone(size) if _LEAST <= size <= _MOST else None
    return ZoneInfo(name) if name in zone_names() else None


@lru_cache(maxsize=4_096)
def canonical_zone(name: str) -> str | None:
    """The name that a zone goes by, the same for all its names; None for what is no zone."""
    zone = zone_of(name)
    if zone is None:
        return None
    return "UTC" if zone == UTC else zone_names().get(name, name)
