"""What holds for a whole journey, each thing a panel with a sentence that says what it is now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from threadline.capabilities.reach.journeys.drawing import time_text
from threadline.capabilities.reach.mail.definition import Mail
from threadline.kernel.errors import InvalidValue
from threadline.kernel.time import duration_text, parse_duration
from threadline.surfaces.console.formats import percent

NOT_FINISHED = "Not finished."


class Panel(NamedTuple):
    """Some of the fields of a journey."""

    title: str
    keys: tuple[str, ...]
    sentence: Callable[[Mapping[str, Any], Mail], str]
    """What a journey says in these fields, beside what is declared for all mail."""


def panels(says: Mapping[str, Any], mail: Mail, fields: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The panels, each with its sentence and its fields."""
    by_key = {field["key"]: field for field in fields}
    return [
        {
            "title": panel.title,
            "sentence": panel.sentence(says, mail),
            "fields": [by_key[key] for key in panel.keys if key in by_key],
        }
        for panel in PANELS
    ]


def outside(fields: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The fields that stand in no panel."""
    inside = {key for panel in PANELS for key in panel.keys}
    return [field for field in fields if field["key"] not in inside]


def _again(says: Mapping[str, Any], mail: Mail) -> str:
    written = says.get("reentry", "once")
    fixed = {"once": "Once, and never again.", "always": "Each time, once they have left it."}
    return fixed.get(str(written)) or _after(written, "Again, {} after they have left it.")


def _runs(says: Mapping[str, Any], mail: Mail) -> str:
    key = says.get("key")
    if key is None:
        return "One at a time of each person."
    field = str(key).removeprefix("event.properties.").replace("_", " ")
    return f"One for each {field}, and at most {says.get('at_once', 10)} of one person at a time."


def _quiet(says: Mapping[str, Any], mail: Mail) -> str:
    if says.get("transactional") is True:
        return "None: its mails are transactional, and never wait."
    hours = says.get("quiet_hours")
    if isinstance(hours, Mapping) and {"from", "to"} <= hours.keys():
        return f"Mails wait from {hours['from']} to {hours['to']}, by the clock of the recipient."
    if hours is not None:
        return NOT_FINISHED
    if mail.quiet_hours is not None:
        start, stop = (time_text(at) for at in (mail.quiet_hours.start, mail.quiet_hours.stop))
        return f"Those of all mail: from {start} to {stop}, by the clock of the recipient."
    return "None: mails leave at any hour."


def _limits(says: Mapping[str, Any], mail: Mail) -> str:
    if says.get("transactional") is True:
        return "None: its mails are transactional."
    caps = ", ".join(f"{cap.mails:,} in {duration_text(cap.per)}" for cap in mail.caps)
    if not caps:
        return "None. Limits hold for all mail together, and a definition file declares them."
    return f"One person gets at most {caps}, of all journeys and broadcasts together."


def _control(says: Mapping[str, Any], mail: Mail) -> str:
    share = says.get("holdout", 0)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
        return NOT_FINISHED
    if not share:
        return "None: everybody gets its mails."
    digits = 0 if float(100 * share).is_integer() else 1
    return f"{percent(share, digits)} of the people go through it without mail, to be compared with."


def _ends(says: Mapping[str, Any], mail: Mail) -> str:
    timeout, exits = says.get("timeout"), {"on_bounce": "a permanent bounce", "on_complaint": "a complaint"}
    named = [name for key, name in exits.items() if says.get(key) != "continue"]
    before = f", or after {' or '.join(named)}" if named else ""
    if timeout is None:
        return f"With its last step{before}."
    return _after(timeout, "With its last step, and after {} in any case") + (f"{before}." if before else ".")


def _flight(says: Mapping[str, Any], mail: Mail) -> str:
    if says.get("on_change") == "move":
        return "They go on in the new version, at the step with the same name."
    return "They keep the version with which they entered."


def _after(written: object, sentence: str) -> str:
    try:
        return sentence.format(duration_text(parse_duration(str(written))))
    except InvalidValue:
        return NOT_FINISHED


PANELS = (
    Panel("Entering again", ("reentry", "existing", "late"), _again),
    Panel("Runs", ("key", "at_once"), _runs),
    Panel("Quiet hours", ("quiet_hours", "timezone"), _quiet),
    Panel("Limits", (), _limits),
    Panel("Control group", ("holdout",), _control),
    Panel("When it ends", ("timeout", "on_bounce", "on_complaint"), _ends),
    Panel("After a change", ("on_change", "version"), _flight),
)
