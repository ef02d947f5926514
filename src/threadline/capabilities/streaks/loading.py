"""From sections of definitions to a `StreakSet`: what ships, what users replace or leave out."""

from __future__ import annotations

import yaml

from threadline.capabilities.definitions import Definitions, Document, Found, Keys
from threadline.capabilities.features.definition import Source
from threadline.capabilities.features.reading import NAME
from threadline.capabilities.streaks.civil import day_of, time_of_day
from threadline.capabilities.streaks.definition import WEEKDAYS, Amnesty, Calendar, Streak, StreakSet
from threadline.capabilities.streaks.reading import read_source, read_streak
from threadline.kernel.limits import AMNESTY_DAYS_MAX, STREAKS_MAX
from threadline.kernel.suggestion import suggestion
from threadline.kernel.zones import zone_of

_NONE = Source(())


def read_streaks(definitions: Definitions) -> StreakSet:
    """The shipped streaks with what these definitions declare. Problems are noted in them, not raised."""
    ours = Definitions.shipped("threadline.capabilities.streaks")
    calendar = _read_calendar(ours.section("calendar"), Calendar(active=_NONE))
    streaks: dict[str, Streak] = {}
    for found in ours.section("streaks"):
        _read_section(found, streaks, frozenset(), {})
    ours.refuse()
    shipping, places = frozenset(streaks), dict[str, str]()
    for found in definitions.section("streaks"):
        _read_section(found, streaks, shipping, places)
    calendar = _read_calendar(definitions.section("calendar"), calendar, _timezone(definitions))
    if len(streaks) > STREAKS_MAX:
        definitions.problems.append(
            f"{len(streaks)} streaks are declared, at most {STREAKS_MAX} are allowed; remove some"
        )
    for amnesty in calendar.amnesty:
        for name in sorted(set(amnesty.streaks) - set(streaks)):
            text = f"an amnesty names streak {name!r}; {suggestion(name, streaks)}"
            definitions.problems.append(f"{amnesty.place}: {text}")
    return StreakSet(tuple(streaks[name] for name in sorted(streaks)), calendar)


def _timezone(definitions: Definitions) -> str:
    """The zone of the definitions; features say what is wrong with it."""
    for document, _, value in definitions.section("timezone"):
        name = document.literal(value)
        if isinstance(name, str) and zone_of(name) is not None:
            return name
    return "UTC"


def _read_section(found: Found, streaks: dict[str, Streak], shipping: frozenset[str], places: dict[str, str]) -> None:
    document, _, section = found
    for name, (key, value) in document.mapping(section, "`streaks`").items():
        if not NAME.fullmatch(name):
            text = f"{name!r} is not a valid streak name; use lower-case letters, digits and _, such as weekly_run"
            document.fail(key, text)
        elif name in places:
            document.fail(key, f"streak {name!r} is already declared at {places[name]}; keep one")
        elif document.literal(value) is not False:
            places[name] = document.place(key)
            streaks[name] = read_streak(document, name, value)
        elif name in shipping:
            places[name] = document.place(key)
            streaks.pop(name, None)
        else:
            text = f"streak {name!r} does not ship and cannot be left out; {suggestion(name, shipping)}"
            document.fail(key, text)


def _read_calendar(sections: list[Found], given: Calendar, timezone: str = "UTC") -> Calendar:
    active, day_start, week_start, amnesty = given.active, given.day_start, given.week_start, given.amnesty
    for document, key, _ in sections[1:]:
        document.fail(key, f"section 'calendar' is already declared at {sections[0].document.place(sections[0].key)}")
    for document, _, node in sections[:1]:
        keys = document.mapping(node, "`calendar`")
        document.known(keys, ("active", "amnesty", "day_start", "week_starts_on"), "`calendar`")
        if "active" in keys:
            active = _active(document, keys["active"][1])
        if "day_start" in keys:
            day_start = _day_start(document, keys["day_start"][1])
        if "week_starts_on" in keys:
            week_start = _week_start(document, keys["week_starts_on"][1])
        if "amnesty" in keys:
            amnesty = _amnesties(document, keys["amnesty"][1])
    return Calendar(active=active, timezone=timezone, day_start=day_start, week_start=week_start, amnesty=amnesty)


def _active(document: Document, node: yaml.Node) -> Source:
    keys = document.mapping(node, "`active`")
    document.known(keys, ("events", "except", "where"), "`active`")
    return read_source(document, keys, node, "`active`")


def _day_start(document: Document, node: yaml.Node) -> int:
    # YAML 1.1 reads 04:00 without quotes as a number to the base of 60; it is meant as written.
    start = time_of_day(node.value) if isinstance(node, yaml.ScalarNode) else None
    if start is None:
        document.fail(node, "`day_start` is a time of day, such as 04:00")
    return start or 0


def _week_start(document: Document, node: yaml.Node) -> int:
    name = document.text(node, "`week_starts_on`").casefold()
    if name in WEEKDAYS:
        return WEEKDAYS.index(name)
    document.fail(node, f"`week_starts_on` is a day of the week; {suggestion(name, WEEKDAYS)}")
    return 0


def _amnesties(document: Document, node: yaml.Node) -> tuple[Amnesty, ...]:
    if not isinstance(node, yaml.SequenceNode):
        document.fail(node, "`amnesty` is a list, such as `- {from: 2026-03-01, to: 2026-03-02}`")
        return ()
    found = []
    for each in node.value:
        keys = document.mapping(each, "an amnesty")
        document.known(keys, ("from", "to", "reason", "streaks"), "an amnesty")
        first, last = (_date(document, keys, name, each) for name in ("from", "to"))
        if last < first or last - first >= AMNESTY_DAYS_MAX:
            document.fail(each, f"an amnesty is 1 to {AMNESTY_DAYS_MAX} days long, from its first day to its last")
        names: list[yaml.Node] = []
        if "streaks" in keys:
            value = keys["streaks"][1]
            names = value.value if isinstance(value, yaml.SequenceNode) else [value]
        streaks = tuple(document.text(name, "an amnesty: `streaks`") for name in names)
        found.append(Amnesty(first, last, streaks, document.place(each)))
    return tuple(found)


def _date(document: Document, keys: Keys, name: str, node: yaml.Node) -> int:
    value = keys[name][1] if name in keys else node
    day = day_of(document.literal(value))
    if day is None:
        document.fail(value, f"an amnesty needs `{name}`, a local date such as 2026-03-01")
    return day or 0
