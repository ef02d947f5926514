"""From files of definitions to `Interests`: what ships, how topics are scored, which further events tell one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from threadline.capabilities.definitions import Definitions, Document, Keys
from threadline.capabilities.interests.definition import (
    CAP_MAX,
    HALF_LIFE_MAX,
    PERIOD_DAYS_MAX,
    SHIPPED,
    WINDOW_MAX,
    WINDOW_MIN,
    Interests,
    Source,
    Topic,
)
from threadline.capabilities.interests.lengths import SCOPE_LENGTH_MAX, TOPIC_LENGTH_MAX
from threadline.kernel.errors import InvalidValue
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import DAY, format_duration, parse_duration

TOPIC_KEYS = ("mode", "period", "half_life", "counting", "most", "window")
SOURCE_KEYS = ("topic", "topic_from", "scopes", "application_from")
MODES = ("periods", "decay")
COUNTINGS = ("every", "capped", "unique")


@dataclass
class _Declared:
    """Everything found so far, over all files."""

    default: Topic = field(default_factory=Topic)
    topics: dict[str, Keys] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=lambda: dict(SHIPPED))
    places: dict[str, str] = field(default_factory=dict)


def read_interests(definitions: Definitions) -> Interests:
    """What ships with what these definitions declare. Problems are noted in them, not raised."""
    declared = _Declared()
    found: list[tuple[Document, str, yaml.Node]] = []
    for document, _, value in definitions.section("interests"):
        keys = document.mapping(value, "`interests`")
        document.known(keys, (*TOPIC_KEYS, "topics", "events"), "`interests`")
        for name in TOPIC_KEYS:
            if name in keys:
                document.once(keys[name][0], f"`{name}`", declared.places)
        declared.default = _read_topic(document, keys, value, declared.default, "`interests`")
        if "topics" in keys:
            for name, (key, body) in document.mapping(keys["topics"][1], "`topics`").items():
                if document.once(key, f"topic {name!r}", declared.places):
                    found.append((document, name, body))
        if "events" in keys:
            _read_sources(document, keys["events"][1], declared)
    topics = {}
    for document, name, body in found:
        what = f"topic {name!r}"
        if len(name) > TOPIC_LENGTH_MAX or not name.strip():
            document.fail(body, f"{what}: a topic has 1 to {TOPIC_LENGTH_MAX} characters")
        keys = document.mapping(body, what)
        document.known(keys, TOPIC_KEYS, what)
        topics[name] = _read_topic(document, keys, body, declared.default, what)
    return Interests(declared.default, topics, declared.sources)


# --- how a topic is scored ----------------------------------------------------------------------


def _read_topic(document: Document, keys: Keys, node: yaml.Node, default: Topic, what: str) -> Topic:
    changes: dict[str, Any] = {}
    if "mode" in keys:
        changes["mode"] = _choice(document, keys["mode"][1], MODES, default.mode, f"{what}: `mode`")
    if "period" in keys:
        changes["period_days"] = _days(document, keys["period"][1], f"{what}: `period`")
    if "half_life" in keys:
        changes["half_life"] = _duration(document, keys["half_life"][1], 1, HALF_LIFE_MAX, f"{what}: `half_life`")
    if "window" in keys:
        changes["window"] = _window(document, keys["window"][1], f"{what}: `window`")
    if "counting" in keys or "most" in keys:
        changes.update(_counting(document, keys, node, default, what))
    return replace(default, **changes)


def _counting(document: Document, keys: Keys, node: yaml.Node, default: Topic, what: str) -> dict[str, Any]:
    counting: str = default.counting
    if "counting" in keys:
        counting = _choice(document, keys["counting"][1], COUNTINGS, counting, f"{what}: `counting`")
    if counting == "capped" and "most" not in keys and default.counting != "capped":
        document.fail(node, f"{what}: `counting: capped` needs to know how many count in a window; add `most: 3`")
    if "most" in keys and counting != "capped":
        document.fail(keys["most"][0], f"{what}: `most` belongs to `counting: capped`; remove one or write the other")
    most = {"every": 0, "unique": 1, "capped": default.most or 1}[counting]
    if "most" in keys:
        most = document.whole(keys["most"][1], f"{what}: `most`")
        if most > CAP_MAX:
            document.fail(keys["most"][1], f"{what}: `most` may be up to {CAP_MAX:,}")
    return {"counting": counting, "most": most}


def _choice(document: Document, node: yaml.Node, known: tuple[str, ...], default: str, what: str) -> str:
    name = document.text(node, what)
    if name in known:
        return name
    if name:
        document.fail(node, f"{what}: unknown {name!r}; {suggestion(name, known)}")
    return default


def _duration(document: Document, node: yaml.Node, least: int, most: int, what: str) -> int:
    text = document.text(node, what)
    try:
        size = parse_duration(text) if text else least
    except InvalidValue as error:
        document.fail(node, f"{what}: {error}")
        return least
    if not least <= size <= most:
        document.fail(node, f"{what} must be between {format_duration(least)} and {format_duration(most)}")
        return least
    return size


def _days(document: Document, node: yaml.Node, what: str) -> int:
    size = _duration(document, node, DAY, PERIOD_DAYS_MAX * DAY, what)
    if size % DAY:
        document.fail(node, f"{what} must be whole days, such as 7d")
    return max(1, size // DAY)


def _window(document: Document, node: yaml.Node, what: str) -> int:
    size = _duration(document, node, WINDOW_MIN, WINDOW_MAX, what)
    if size % DAY and DAY % size:
        document.fail(node, f"{what} must be whole days or divide a day evenly, such as 7d, 1d, 6h or 10m")
    return size


# --- which events tell an interest --------------------------------------------------------------


def _read_sources(document: Document, node: yaml.Node, declared: _Declared) -> None:
    for name, (key, value) in document.mapping(node, "`events`").items():
        what = f"event {name!r}"
        if not document.once(key, what, declared.places):
            continue
        if name.startswith(SYSTEM_PREFIX):
            document.fail(key, f"{what}: names that start with {SYSTEM_PREFIX!r} are Threadline's own")
        elif document.literal(value) is not False:
            declared.sources[name] = _read_source(document, value, what)
        elif name in SHIPPED:
            del declared.sources[name]
        else:
            document.fail(key, f"{what} does not ship and cannot be left out; {suggestion(name, SHIPPED)}")


def _read_source(document: Document, node: yaml.Node, what: str) -> Source:
    keys = document.mapping(node, what)
    document.known(keys, SOURCE_KEYS, what)
    if ("topic" in keys) == ("topic_from" in keys):
        document.fail(node, f"{what} needs its topic: `topic: product`, or `topic_from` and the property that tells it")
    texts = {name: document.text_in(keys, name, what) for name in ("topic", "topic_from", "application_from")}
    if len(texts["topic"]) > TOPIC_LENGTH_MAX:
        document.fail(keys["topic"][1], f"{what}: a topic has up to {TOPIC_LENGTH_MAX} characters")
    scopes = []
    if "scopes" in keys:
        for scope, (key, value) in document.mapping(keys["scopes"][1], f"{what}: `scopes`").items():
            if not 0 < len(scope) <= SCOPE_LENGTH_MAX:
                document.fail(key, f"{what}: a scope's topic has 1 to {SCOPE_LENGTH_MAX} characters")
            scopes.append((scope, document.text(value, f"{what}: scope {scope!r}")))
    return Source(texts["topic"], texts["topic_from"], tuple(scopes), texts["application_from"])
