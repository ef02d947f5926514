"""From files of definitions to one `Points`: what ships, and what users lay over it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

from threadline.capabilities.definitions import Definitions, Document, Keys
from threadline.capabilities.features.definition import number_path
from threadline.capabilities.points.definition import Multiplier, Points, Rule, Table
from threadline.capabilities.points.events import OWN
from threadline.kernel.errors import InvalidValue
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.limits import EVENT_TYPE_LENGTH_MAX, POINTS_RULES_MAX
from threadline.kernel.time import DAY, HOUR, YEAR, parse_duration, parse_time
from threadline.kernel.zones import zone_names

KEYS = ("back", "events_per_hour", "expires_after", "multipliers", "spike_times", "tables")
RULE_KEYS = ("also", "cooldown", "per_day", "points")
BACK_MAX, COOLDOWN_MAX, EXPIRY_MAX = 8 * DAY, 2 * DAY, 9 * YEAR
POINTS_MAX, TIMES_MAX = 1_000_000_000, Decimal(1_000)

_PATH = re.compile(r"[a-z][a-z0-9_]{0,63}(\.[^.\s]{1,64}){1,4}")


def read_points(definitions: Definitions) -> Points | None:
    """The shipped table with what these definitions lay over it; None if they say ``points: false``.

    Problems are noted in the definitions, not raised.
    """
    ours = Definitions.shipped("threadline.capabilities.points")
    [shipped] = ours.section("points")
    points = _Reader(shipped.document, Points((Table("0", {}),))).read(shipped.value)
    ours.refuse()
    points = replace(points, tables=points.tables[1:], timezone=_timezone(definitions))
    found = definitions.section("points")
    for extra in found[1:]:
        extra.document.fail(extra.key, "`points` is already declared in another file; keep one")
    if found and found[0].document.literal(found[0].value) is False:
        return None
    return _Reader(found[0].document, points).read(found[0].value) if found else points


def _timezone(definitions: Definitions) -> str:
    # The features say what is wrong with this section; here an unusable name means UTC.
    for document, _, value in definitions.section("timezone"):
        name = document.literal(value)
        return name if isinstance(name, str) and name in zone_names() else "UTC"
    return "UTC"


class _Reader:
    """Reads one section over the points known so far."""

    def __init__(self, document: Document, points: Points) -> None:
        self._document = document
        self._points = points

    def read(self, node: yaml.Node) -> Points:
        document = self._document
        keys = document.mapping(node, "`points`")
        document.known(keys, KEYS, "`points`")
        points = self._points
        if "tables" in keys:
            points = replace(points, tables=self._tables(keys["tables"][1]))
        if "multipliers" in keys:
            points = replace(points, multipliers=tuple(self._multipliers(keys["multipliers"][1])))
        if "events_per_hour" in keys:
            points = replace(points, events_per_hour=document.whole(keys["events_per_hour"][1], "`events_per_hour`"))
        if "spike_times" in keys:
            points = replace(points, spike_times=document.whole(keys["spike_times"][1], "`spike_times`"))
        if "back" in keys:
            points = replace(points, back=self._duration(keys["back"][1], "`back`", BACK_MAX))
        if "expires_after" in keys:
            points = replace(
                points, expires_after=self._duration(keys["expires_after"][1], "`expires_after`", EXPIRY_MAX)
            )
        return points

    # --- tables ------------------------------------------------------------------------------

    def _tables(self, node: yaml.Node) -> tuple[Table, ...]:
        tables = list(self._points.tables)
        for each in self._items(node, "`tables`", "a list of tables, each with a `version`"):
            tables.append(self._table(each, tables[-1], {table.version for table in tables}))
        return tuple(tables)

    def _table(self, node: yaml.Node, before: Table, taken: set[str]) -> Table:
        document = self._document
        keys = document.mapping(node, "a table")
        document.known(keys, ("earn", "from", "version"), "a table")
        version = str(document.literal(keys["version"][1])) if "version" in keys else ""
        if not version or len(version) > 64:
            document.fail(
                node, "a table needs a `version`, a number or a short text, which every line it makes will name"
            )
        elif version in taken:
            document.fail(node, f"version {version!r} is already taken; give each table its own version")
        what = f"table {version!r}"
        starts_at = self._instant(keys["from"][1], what) if "from" in keys else before.starts_at
        if starts_at < before.starts_at:
            document.fail(keys["from"][0], f"{what} begins before table {before.version!r}; put them in order")
        rules = dict(before.rules)
        if "earn" in keys:
            self._earn(keys["earn"][1], what, rules)
        return Table(version, rules, starts_at)

    def _earn(self, node: yaml.Node, what: str, rules: dict[str, Rule]) -> None:
        document = self._document
        for name, (key, value) in document.mapping(node, f"`earn` of {what}").items():
            if document.literal(value) is False:
                if rules.pop(name, None) is None:
                    document.fail(key, f"{name!r} earns nothing before {what}; remove the line")
                continue
            rule = self._rule(name, key, value, rules.get(name))
            for type in rule.types:
                self._check_type(type, rule, rules, key)
            rules[name] = rule
        if len(rules) > POINTS_RULES_MAX:
            document.fail(node, f"{what} has {len(rules)} rules; at most {POINTS_RULES_MAX} are allowed, remove some")

    def _check_type(self, type: str, rule: Rule, rules: dict[str, Rule], key: yaml.Node) -> None:
        if type in OWN or type.startswith(SYSTEM_PREFIX):
            self._document.fail(key, f"{type!r} is Threadline's own and cannot earn points")
        elif not 0 < len(type) <= EVENT_TYPE_LENGTH_MAX:
            self._document.fail(key, f"an event type has 1 to {EVENT_TYPE_LENGTH_MAX} characters")
        other = next((each for each in rules.values() if each.name != rule.name and type in each.types), None)
        if other is not None:
            self._document.fail(key, f"{type!r} earns by {other.name!r} already; remove one of the two")

    def _rule(self, name: str, key: yaml.Node, node: yaml.Node, before: Rule | None) -> Rule:
        document, what = self._document, f"`earn` of {name!r}"
        before = before or Rule(name, 1)
        if not isinstance(node, yaml.MappingNode):
            return replace(before, points=self._amount(node, what))
        keys = document.mapping(node, what)
        document.known(keys, RULE_KEYS, what)
        if "points" not in keys:
            document.fail(key, f"{what} needs `points`")
            return before
        also = (
            before.also
            if "also" not in keys
            else [document.text(each, f"`also` of {name!r}") for each in self._also(keys)]
        )
        return Rule(
            name,
            self._amount(keys["points"][1], what),
            tuple(also),
            document.whole(keys["per_day"][1], f"`per_day` of {name!r}") if "per_day" in keys else None,
            self._duration(keys["cooldown"][1], f"`cooldown` of {name!r}", COOLDOWN_MAX)
            if "cooldown" in keys
            else None,
        )

    def _also(self, keys: Keys) -> list[yaml.Node]:
        node = keys["also"][1] if "also" in keys else None
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        return [] if node is None else [node]

    def _amount(self, node: yaml.Node, what: str) -> int:
        points = self._document.whole(node, what)
        if points > POINTS_MAX:
            self._document.fail(node, f"{what} must be at most {POINTS_MAX:,}")
        return min(points, POINTS_MAX)

    # --- multipliers -------------------------------------------------------------------------

    def _multipliers(self, node: yaml.Node) -> list[Multiplier]:
        document = self._document
        found = []
        for each in self._items(node, "`multipliers`", "a list, each with `by`, `from` and `times`"):
            keys = document.mapping(each, "a multiplier")
            document.known(keys, ("by", "from", "times"), "a multiplier")
            if not {"by", "from", "times"} <= set(keys):
                document.fail(each, "a multiplier needs `by`, `from` and `times`")
                continue
            path = document.text(keys["by"][1], "`by`")
            if path and not _PATH.fullmatch(path):
                document.fail(keys["by"][1], f"`by`: {path!r} names no number; write it like streaks.daily.current")
            least = self._decimal(keys["from"][1], "`from`", Decimal(10) ** 12)
            times = self._decimal(keys["times"][1], "`times`", TIMES_MAX)
            found.append(Multiplier(number_path(path), least, times, document.place(keys["by"][1])))
        return found

    def _decimal(self, node: yaml.Node, what: str, most: Decimal) -> Decimal:
        # The text as it stands: a float would not be the number that was written.
        text = node.value if isinstance(node, yaml.ScalarNode) else ""
        try:
            number = Decimal(text)
        except InvalidOperation:
            number = Decimal(0)
        if not number.is_finite() or not 0 < number <= most or len(text) > 20:
            self._document.fail(node, f"{what} must be a decimal above 0 and at most {most:,}, such as 1.5")
            return Decimal(1)
        return number

    # --- forms -------------------------------------------------------------------------------

    def _items(self, node: yaml.Node, what: str, form: str) -> list[yaml.Node]:
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        self._document.fail(node, f"{what} must be {form}")
        return []

    def _duration(self, node: yaml.Node, what: str, most: int) -> int:
        def parse(text: str) -> int:
            size = parse_duration(text)
            if size > most:
                raise InvalidValue(f"at most {most // HOUR} hours")
            return size

        return self._parsed(node, what, parse, most)

    def _instant(self, node: yaml.Node, what: str) -> int:
        return self._parsed(node, f"`from` of {what}", parse_time, 0)

    def _parsed(self, node: yaml.Node, what: str, parse: Callable[[str], int], instead: int) -> int:
        text: Any = node.value if isinstance(node, yaml.ScalarNode) else ""
        try:
            return parse(text)
        except InvalidValue as error:
            self._document.fail(node, f"{what}: {error}")
            return instead
