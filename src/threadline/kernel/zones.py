"""Zones: the names of the IANA time zone database, offsets, and which of them are one zone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, timedelta, timezone, tzinfo
from functools import lru_cache
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo

from threadline.kernel.windows_zones import WINDOWS_ZONES

NAME_LENGTH_MAX = 64

_FIXED = re.compile(r"(?:utc|gmt)?([+-])([01]?\d)(?::?([0-5]\d))?", re.ASCII)
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


@lru_cache(maxsize=1)
def _names_in_small_letters() -> Mapping[str, str]:
    return {name.lower(): name for name in (*WINDOWS_ZONES, *zone_names())}


@lru_cache(maxsize=4_096)
def zone_of(name: str) -> tzinfo | None:
    """The zone that a text names, None if it names none.

    That is an IANA name such as ``Europe/Rome``, one of Windows such as ``W. Europe Standard Time``, or an offset from
    ``-12:00`` to ``+14:00``, which may follow ``UTC`` or ``GMT``: ``+05:30``, ``+0530``, ``UTC+2``. Capitals and
    blanks around it make no difference. Clients write what their system calls its zone, and a day that is counted by
    UTC instead is wrong without anybody seeing it.
    """
    if len(name) > NAME_LENGTH_MAX:
        return None
    text = name.strip().lower()
    # A name goes before an offset: the database has `GMT+0`, and Windows `UTC-11`.
    known = _names_in_small_letters().get(text)
    if known is not None:
        return ZoneInfo(WINDOWS_ZONES.get(known, known))
    fixed = _FIXED.fullmatch(text)
    if fixed is None:
        return None
    size = timedelta(hours=int(fixed[2]), minutes=int(fixed[3] or 0)) * (-1 if fixed[1] == "-" else 1)
    return timezone(size) if _LEAST <= size <= _MOST else None


# --- whose zone -----------------------------------------------------------------------------
#
# An event counts in the zone that it names itself (`zone_named` of ``context.timezone``), a person is written to in
# the zone that they are known to have (`zone_of_person`), and what everybody shares goes by the zone of the
# definitions (`threadline.kernel.calendar.Calendar`).


def zone_named(name: Any) -> str | None:
    """The zone that a value of an event or a profile names, by the name that it goes by; None: it names none."""
    return canonical_zone(name) if type(name) is str else None


def zone_translated(name: Any) -> str | None:
    """The IANA name of the zone that Windows calls so; None for all else, also for an IANA name."""
    known = _names_in_small_letters().get(name.strip().lower(), "") if type(name) is str else ""
    return WINDOWS_ZONES.get(known)


def zone_of_person(profile: Any, otherwise: str) -> str:
    """The zone of the trait `timezone` of a profile, or another one where that names none."""
    traits = profile.get("traits") if isinstance(profile, dict) else None
    return zone_named(traits.get("timezone") if isinstance(traits, dict) else None) or otherwise


@lru_cache(maxsize=4_096)
def canonical_zone(name: str) -> str | None:
    """The name that a zone goes by, the same for all its names: an IANA name or ``+05:30``; None for what is no
    zone."""
    zone = zone_of(name)
    if zone is None:
        return None
    if zone == UTC:
        return "UTC"
    if isinstance(zone, ZoneInfo):
        return zone_names()[zone.key]
    return f"{zone.tzname(None)}"[len("UTC") :]
