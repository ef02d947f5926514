"""From one feature's YAML to a `Feature`: every mistake is named with its file, its line and what to write instead."""

from __future__ import annotations

import re
from math import isfinite

import yaml

from threadline.capabilities.conditions import EVERY_EVENT, Path, Where
from threadline.capabilities.conditions.forms import read_where_at
from threadline.capabilities.definitions import Document, Keys
from threadline.capabilities.features.definition import (
    AGGREGATES,
    ANY,
    Feature,
    Feed,
    Part,
    Scalar,
    Source,
)
from threadline.kernel.errors import InvalidValue
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import MINUTE, YEAR, parse_duration

WINDOW_MIN, WINDOW_MAX = MINUTE, 10 * YEAR

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")

_EVERYWHERE = ("aggregate", "description", "unit", "version", "empty", "stale_after")
_OF_EVENTS = ("events", "except", "where")


def allowed_keys(aggregate: str) -> tuple[str, ...]:
    """The keys that a feature with this aggregate may have."""
    rules = AGGREGATES[aggregate]
    keys = [*_EVERYWHERE, *(["window"] if rules.windowed else [])]
    if aggregate == "ratio":
        return (*keys, "numerator", "denominator")
    if aggregate == "score":
        return (*keys, "parts")
    keys += _OF_EVENTS
    if rules.reads != "none":
        keys.append("of")
    if rules.reads == "number":
        keys.append("currency")
    return tuple(keys)


class FeatureReader:
    """Reads the features of one document; those written inside a ratio come out as hidden ones."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._around: list[yaml.Node] = []
        """The ratios that are being read, the outermost first."""
        self.features: list[Feature] = []

    def read(self, name: str, node: yaml.Node, *, hidden: bool = False, window: int | None = None) -> None:
        """Read one feature; ``window`` is that of the ratio around it, for a part that names none."""
        document, what = self._document, f"feature {name!r}"
        keys = document.mapping(node, what)
        if not isinstance(node, yaml.MappingNode):
            return
        aggregate = self._aggregate(keys, node, what)
        if not aggregate:
            return
        document.known(keys, self._offered(keys, aggregate, what), what)
        rules = AGGREGATES[aggregate]
        if "window" in keys and rules.windowed:
            window = self._window(keys["window"][1], what)
        elif not rules.windowed:
            window = None
        self._around.append(node)
        inside = {side: self._side(name, side, keys, node, window) for side in ("numerator", "denominator")}
        self._around.pop()
        self.features.append(
            Feature(
                name=name,
                aggregate=aggregate,
                source=None if rules.composed else self._source(keys, node, aggregate, what),
                currency=self._path(keys["currency"][1], what) if "currency" in keys else (),
                window=window,
                empty=self._scalar(keys["empty"][1], f"{what}: `empty`") if "empty" in keys else rules.empty,
                unit=document.text_in(keys, "unit", what),
                description=document.text_in(keys, "description", what),
                version=document.whole_in(keys, "version", what, 1),
                stale_after=self._duration(keys["stale_after"][1], f"{what}: `stale_after`")
                if "stale_after" in keys
                else None,
                numerator=inside["numerator"] if aggregate == "ratio" else "",
                denominator=inside["denominator"] if aggregate == "ratio" else "",
                parts=self._parts(keys, node, what) if aggregate == "score" else (),
                hidden=hidden,
                place=document.place(node),
                empty_place=document.place(keys["empty"][1]) if "empty" in keys else "",
            )
        )

    def _aggregate(self, keys: Keys, node: yaml.Node, what: str) -> str:
        if "aggregate" not in keys:
            near = next((key for key in keys if suggestion(key, ["aggregate"]).startswith("did")), None)
            if near is None:
                self._document.fail(node, f"{what} has no aggregate; add a line such as `aggregate: count`")
            else:
                self._document.fail(keys[near][0], f"{what}: unknown key {near!r}; did you mean 'aggregate'?")
            return ""
        aggregate = self._document.text(keys["aggregate"][1], f"{what}: `aggregate`")
        if aggregate and aggregate not in AGGREGATES:
            text = f"{what}: unknown aggregate {aggregate!r}; {suggestion(aggregate, AGGREGATES)}"
            self._document.fail(keys["aggregate"][1], text)
            return ""
        return aggregate

    def _offered(self, keys: Keys, aggregate: str, what: str) -> tuple[str, ...]:
        """The keys in place, after those that exist but do not go with this aggregate have been told."""
        offered = allowed_keys(aggregate)
        elsewhere = {key for each in AGGREGATES for key in allowed_keys(each)} - set(offered)
        for key in sorted(elsewhere & set(keys)):
            fitting = ", ".join(each for each in AGGREGATES if key in allowed_keys(each))
            text = f"{what}: {aggregate!r} takes no `{key}`; remove it, or use one of {fitting}"
            self._document.fail(keys[key][0], text)
        return (*offered, *elsewhere)

    def _window(self, node: yaml.Node, what: str) -> int | None:
        if self._document.literal(node) == "lifetime":
            return None
        size = self._duration(node, f"{what}: `window`", " or lifetime")
        if size is not None and not WINDOW_MIN <= size <= WINDOW_MAX:
            self._document.fail(node, f"{what}: a window is between 1m and 10y; write `lifetime` for all time")
            return None
        return size

    def _duration(self, node: yaml.Node, what: str, otherwise: str = "") -> int | None:
        value = self._document.literal(node)
        try:
            return parse_duration(value if isinstance(value, str) else getattr(node, "value", ""))
        except (InvalidValue, TypeError):
            shown = getattr(node, "value", value)
            self._document.fail(node, f"{what}: {shown!r} is not a duration; write it like 30d, 12h or 1y{otherwise}")
            return None

    def _scalar(self, node: yaml.Node, what: str) -> Scalar:
        value = self._document.literal(node)
        if isinstance(value, yaml.Node) or (isinstance(value, float) and not isfinite(value)):
            self._document.fail(node, f"{what} must be a single text, number, true, false or null")
            return None
        plain: Scalar = value
        return plain

    def _path(self, node: yaml.Node, what: str) -> Path:
        text = self._document.literal(node)
        steps = tuple(text.split(".")) if isinstance(text, str) else ()
        if not steps or not all(steps) or steps == ("context",):
            self._document.fail(
                node, f"{what}: a path names a property, such as `total`, `order.total` or `context.ip`"
            )
            return ("",)
        return steps

    # --- where events come from ---------------------------------------------------------------------

    def source(self, keys: Keys, node: yaml.Node, what: str) -> Source:
        """Which events something counts, by its keys ``events``, ``except`` and ``where``."""
        return self._source(keys, node, "count", what)

    def _source(self, keys: Keys, node: yaml.Node, aggregate: str, what: str) -> Source:
        document = self._document
        if "events" not in keys:
            document.fail(node, f"{what} has no events; add `events: purchase_completed`, a list, or `events: any`")
            return Source(())
        path = self._path(keys["of"][1], what) if "of" in keys else ()
        where = read_where_at(document, keys["where"][1], what) if "where" in keys else EVERY_EVENT
        feeds = self._feeds(keys["events"][1], path, where, what)
        reads = AGGREGATES[aggregate].reads
        for feed in feeds:
            if reads != "none" and not feed.path:
                text = f"{what}: {aggregate!r} needs the path of a value; add `of: total`, or `value` under each event"
                document.fail(keys["events"][0], text)
                break
            if feed.sign < 0 and reads != "number":
                document.fail(keys["events"][0], f"{what}: {aggregate!r} takes no `sign`; remove it, or use sum")
                break
        excluded = self._excluded(keys, feeds, what)
        return Source(feeds, excluded)

    def _excluded(self, keys: Keys, feeds: tuple[Feed, ...], what: str) -> tuple[str, ...]:
        if "except" not in keys:
            return ()
        if not any(feed.type == ANY for feed in feeds):
            self._document.fail(keys["except"][0], f"{what}: `except` goes with `events: any` only; remove it")
            return ()
        return tuple(sorted(name for name, _ in self._types(keys["except"][1], f"{what}: `except`")))

    def _feeds(self, node: yaml.Node, path: Path, where: Where, what: str) -> tuple[Feed, ...]:
        feeds = []
        for name, options in self._types(node, f"{what}: `events`"):
            feed_path, sign, own = path, 1, where
            if options is not None and self._document.literal(options) is not None:
                inner = f"{what}, event {name!r}"
                keys = self._document.mapping(options, inner)
                self._document.known(keys, ("value", "sign", "where"), inner)
                feed_path = self._path(keys["value"][1], inner) if "value" in keys else path
                sign = self._sign(keys["sign"][1], inner) if "sign" in keys else 1
                if "where" in keys:
                    own = Where((*where.parts, *read_where_at(self._document, keys["where"][1], inner).parts))
            type = ANY if name == "any" else name
            feeds.append(Feed(type, feed_path, sign, own))
        if len(feeds) > 1 and any(feed.type == ANY for feed in feeds):
            self._document.fail(node, f"{what}: `any` stands alone; remove the other events, or remove any")
        return tuple(sorted(feeds, key=lambda feed: feed.type))

    def _types(self, node: yaml.Node, what: str) -> list[tuple[str, yaml.Node | None]]:
        found: list[tuple[str, yaml.Node | None]] = []
        if isinstance(node, yaml.MappingNode):
            found = [(name, value) for name, (_, value) in self._document.mapping(node, what).items()]
        else:
            nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
            found = [(name, None) for each in nodes if (name := self._document.text(each, what))]
        names = [name for name, _ in found]
        for name in sorted(set(names)):
            if names.count(name) > 1:
                self._document.fail(node, f"{what}: {name!r} is listed twice; keep one")
            if name.startswith(SYSTEM_PREFIX):
                self._document.fail(node, f"{what}: {name!r} is an event of Threadline's own and feeds no features")
        if not found and not isinstance(node, yaml.ScalarNode):
            self._document.fail(node, f"{what} is empty; name at least one event type")
        return found

    def _sign(self, node: yaml.Node, what: str) -> int:
        value = self._document.literal(node)
        if type(value) is int and value in (1, -1):
            return value
        self._document.fail(node, f"{what}: `sign` is 1 or -1")
        return 1

    # --- features built on features -----------------------------------------------------------------

    def _side(self, name: str, side: str, keys: Keys, node: yaml.Node, window: int | None) -> str:
        """The name of a ratio's numerator or denominator; one written in place is read as a hidden feature."""
        if "aggregate" not in keys or self._document.literal(keys["aggregate"][1]) != "ratio":
            return ""
        if side not in keys:
            text = f"feature {name!r}: a ratio needs `{side}`: the name of a feature, or aggregate and events in place"
            self._document.fail(node, text)
            return ""
        value = keys[side][1]
        if any(value is each for each in self._around):
            # An alias can lead back to what it stands in.
            self._document.fail(keys[side][0], f"feature {name!r}: a ratio cannot be its own `{side}`")
            return ""
        if isinstance(value, yaml.MappingNode):
            inner = f"{name}.{side}"
            self.read(inner, value, hidden=True, window=window)
            return inner
        return self._document.text(value, f"feature {name!r}: `{side}`")

    def _parts(self, keys: Keys, node: yaml.Node, what: str) -> tuple[Part, ...]:
        document = self._document
        if "parts" not in keys:
            document.fail(node, f"{what}: a score needs `parts`: feature names, each with {{weight: …, half: …}}")
            return ()
        parts = []
        for feature, (_, value) in document.mapping(keys["parts"][1], f"{what}: `parts`").items():
            inner = f"{what}, part {feature!r}"
            options = document.mapping(value, inner)
            document.known(options, ("weight", "half", "falling"), inner)
            missing = [key for key in ("weight", "half") if key not in options]
            if missing:
                document.fail(value, f"{inner} needs {' and '.join(missing)}, e.g. {{weight: 30, half: 14}}")
                continue
            falling = document.literal(options["falling"][1]) if "falling" in options else False
            if type(falling) is not bool:
                document.fail(options["falling"][1], f"{inner}: `falling` is true or false")
            weight, half = (document.positive(options[key][1], f"{inner}: `{key}`") for key in ("weight", "half"))
            parts.append(Part(feature, weight, half, bool(falling)))
        if not parts and isinstance(keys["parts"][1], yaml.MappingNode) and not keys["parts"][1].value:
            document.fail(keys["parts"][0], f"{what}: `parts` is empty; name at least one feature")
        return tuple(sorted(parts, key=lambda part: part.feature))
