"""From one streak's YAML to a `Streak`: every mistake is named with its file, its line and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from threadline.capabilities.definitions import Document, Keys
from threadline.capabilities.features.definition import Source
from threadline.capabilities.features.reading import FeatureReader
from threadline.capabilities.points.events import OWN, POINTS_ADJUSTED, POINTS_SPEND_REQUESTED
from threadline.capabilities.streaks.definition import CADENCES, COUNTINGS, Cadence, Counting, Freezes, Streak
from threadline.capabilities.streaks.events import OURS
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import STREAK_GRACE_MAX_SECONDS, STREAK_MILESTONES_MAX, STREAK_TIMES_MAX
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import SECOND, format_duration, parse_duration

KEYS = (
    "cadence", "counting", "description", "events", "except", "freezes", "grace", "milestones", "times", "where",
)  # fmt: skip
_MADE_OF_POINTS = OWN - {POINTS_SPEND_REQUESTED, POINTS_ADJUSTED}
"""What Threadline makes of points; the other two are told by callers."""
_DAYS_OF = {"day": 1, "week": 7, "month": 28}
"""How many days every period of a cadence has at least."""


def read_streak(document: Document, name: str, node: yaml.Node) -> Streak:
    """Read one streak; what is wrong is noted in the document and read as if it were not there."""
    what = f"streak {name!r}"
    keys = document.mapping(node, what)
    document.known(keys, KEYS, what)
    source = None
    if "events" in keys:
        source = read_source(document, keys, node, what)
    else:
        for key in ("except", "where"):
            if key in keys:
                document.fail(keys[key][0], f"{what}: `{key}` goes with `events`; without it all activity counts")
    cadence: Cadence = _choice(document, keys, "cadence", CADENCES, "day", what)  # type: ignore[assignment]
    times = document.whole_in(keys, "times", what, 1)
    usual = "events" if cadence == "day" and times > 1 else "days"
    counting: Counting = _choice(document, keys, "counting", COUNTINGS, usual, what)  # type: ignore[assignment]
    if times > (most := _DAYS_OF[cadence] if counting == "days" else STREAK_TIMES_MAX):
        text = f"{what}: a {cadence} has at most {most} {counting} to count" + (
            "; count events instead: `counting: events`" if counting == "days" else ""
        )
        document.fail(keys["times"][1], text)
    description = document.text_in(keys, "description", what)
    return Streak(
        name=name,
        source=source,
        cadence=cadence,
        times=times,
        counting=counting,
        grace=_grace(document, keys, what),
        freezes=_freezes(document, keys["freezes"][1], what) if "freezes" in keys else Freezes(),
        milestones=_milestones(document, keys["milestones"][1], what) if "milestones" in keys else (),
        description=description,
        place=document.place(node),
    )


def read_source(document: Document, keys: Keys, node: yaml.Node, what: str) -> Source:
    """Which events count. Those that Threadline makes never do, so none of them may be named."""
    source = FeatureReader(document).source(keys, node, what)
    for feed in source.feeds:
        if feed.type in OURS or feed.type in _MADE_OF_POINTS:
            text = f"{what}: {feed.type!r} is nothing that a person does and never counts; name what they do"
            document.fail(keys["events"][1], text)
    return source


def _choice(document: Document, keys: Keys, key: str, offered: Sequence[str], usual: str, what: str) -> str:
    if key not in keys:
        return usual
    value = document.text(keys[key][1], f"{what}: `{key}`")
    if value in offered:
        return value
    document.fail(keys[key][1], f"{what}: `{key}`: unknown {value!r}; {suggestion(value, offered)}")
    return usual


def _grace(document: Document, keys: Keys, what: str) -> int:
    if "grace" not in keys:
        return 0
    node = keys["grace"][1]
    value, most = document.literal(node), STREAK_GRACE_MAX_SECONDS * SECOND
    try:
        size = parse_duration(value if isinstance(value, str) else "")
    except InvalidValue:
        size = most + 1
    if size <= most:
        return size
    document.fail(node, f"{what}: `grace` is a duration up to {format_duration(most)}, such as 3h")
    return 0


def _freezes(document: Document, node: yaml.Node, what: str) -> Freezes:
    what = f"{what}: `freezes`"
    keys = document.mapping(node, what)
    document.known(keys, ("start", "every", "max"), what)
    values = {key: document.whole(value, f"{what}: `{key}`") for key, (_, value) in keys.items()}
    if "max" not in values:
        document.fail(node, f"{what} needs `max`, how many may be held, e.g. {{every: 7, max: 2}}")
        return Freezes()
    if values.get("start", 0) > values["max"]:
        document.fail(keys["start"][1], f"{what}: `start` is more than `max`, {values['max']}, which may be held")
    return Freezes(values.get("start", 0), values.get("every", 0), values["max"])


def _milestones(document: Document, node: yaml.Node, what: str) -> tuple[int, ...]:
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    found = sorted({document.whole(each, f"{what}: `milestones`") for each in nodes})
    if len(nodes) > STREAK_MILESTONES_MAX:
        document.fail(
            node, f"{what}: {len(nodes)} milestones are declared, at most {STREAK_MILESTONES_MAX} are allowed"
        )
    return tuple(found[:STREAK_MILESTONES_MAX])
