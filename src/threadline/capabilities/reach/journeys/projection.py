"""The projection ``journeys``: where a person is in which journey, where they were, and which mails they got."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeGuard

from threadline.capabilities.reach.journeys.events import (
    JOURNEY_ENTERED,
    JOURNEY_EXITED,
    JOURNEY_PAUSED,
    JOURNEY_RESUMED,
    REQUESTS,
    RUN_EVENTS,
)
from threadline.capabilities.reach.journeys.steps import JOURNEYS
from threadline.capabilities.reach.mail.events import MAIL_SENT, MAIL_SKIPPED
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Recorded
from threadline.kernel.limits import JOURNEY_VARIABLE_BYTES_MAX, JOURNEY_VARIABLES_MAX, JOURNEYS_MAX
from threadline.kernel.merging import keep_smallest, merge_entries
from threadline.kernel.names import NAME
from threadline.kernel.personal import PersonFile, StoreTable, joined, shown_events, shown_views
from threadline.kernel.projection import Depends, Faster, Index, Projection, Row
from threadline.kernel.sender import EFFECT_WITHDRAWN
from threadline.kernel.time import format_time, parse_time
from threadline.kernel.view_parts import VALUE, Parts, values

TABLE = "journey"
COMPLETED = "completed"
"""The reason of a run that went through all steps."""

_STEP = re.compile(r"[a-z0-9_./-]{0,500}")
_RUN = re.compile(r"[0-9a-f]{32}")
_RUNS_MAX = 4
"""Runs of one journey that are remembered, those that began last."""
KEYED_RUNS_MAX = 64
"""Runs of one keyed journey that are remembered, those that began last."""
_JOURNEYS_MAX = 2 * JOURNEYS_MAX
"""Journeys remembered of one person, those with the smallest names: more than can be declared at a time."""
_TEMPLATES_MAX = 300
_NUMBER_MAX = 1 << 40

State = dict[str, dict[str, Any]]
"""`runs`: journey -> when it began and its id -> [of the entry, of the newest event]; `paused`: journey -> [when, id of
the event, whether]; `mails`: template -> [last sent, last handed over, last skipped]; `keyed`, where there are any: as
`runs`, of journeys with a key."""
_ENTRY, _NEWEST = range(2)
_SENT, _HANDED, _SKIPPED = range(3)


Key = str | int | float | None


class Run(NamedTuple):
    """A person's way through a journey."""

    journey: str
    id: str
    entered_at: int
    since: int
    """When the event occurred that let the person enter: what occurred before says nothing to this run."""
    draw: int
    """What decides the variants of mails, from 0 to 65,535."""
    holdout: bool
    variables: dict[str, Any]
    key: Key
    """What it is about, in a journey with a key; None: there is none."""
    number: int
    """Of its newest event."""
    at: int
    """When that occurred."""
    version: int
    step: str
    began: int
    """When the wait at that step began."""
    until: int
    """When that wait ends by time; 0: not by time."""
    came: bool
    """Whether the event has come that the step waits for, while the journey was paused."""
    reason: str
    """Why it ended; empty: it has not."""
    interrupted: bool
    """Whether something else than its own steps ended it: mails that wait are not to be sent then."""


def empty() -> State:
    """Nothing."""
    return {"runs": {}, "paused": {}, "mails": {}}


def runs_of(state: State, journey: str) -> list[Run]:
    """The remembered runs of a journey whose entry is this person's, the first to begin first."""
    stored = state["runs"].get(journey, {})
    if journey in state.get("keyed", ()):
        stored = {**stored, **state["keyed"][journey]}
    return [_run(journey, begun, stored[begun]) for begun in sorted(stored) if stored[begun][_ENTRY] is not None]


def active_run(state: State, journey: str) -> Run | None:
    """The first run to begin of those that count."""
    return next((run for run in runs_of(state, journey) if not run.reason), None)


def active_runs(state: State) -> list[Run]:
    """The runs that count, by journey: of several with one key, as after a merge, the first to begin."""
    active: list[Run] = []
    for journey in journeys_in(state):
        first: dict[Key, Run] = {}
        for run in runs_of(state, journey):
            if not run.reason:
                first.setdefault(run.key, run)
        active += first.values()
    return active


def journeys_in(state: State) -> list[str]:
    """The journeys of which runs are remembered, by name."""
    return sorted({*state["runs"], *state.get("keyed", ())})


def is_paused(state: State, journey: str) -> bool:
    """Whether the person is to stay where they are in a journey."""
    return any(state["paused"].get(name, _NEVER)[2] for name in (journey, ""))


def pause_changed_at(state: State, journey: str) -> int:
    """When the person was last paused or resumed in a journey; 0: never."""
    return int(state["paused"].get(journey, _NEVER)[0])


def mail_counts(stored: list[int]) -> int:
    """When a mail of a template was sent last, or handed over and not skipped since; 0: never."""
    handed = stored[_HANDED] if stored[_HANDED] > stored[_SKIPPED] else 0
    return max(stored[_SENT], handed)


_NEVER = (0, "", False)


def _key(entered_at: int, id: str) -> str:
    return f"{entered_at:016x}.{id}"


def _run(journey: str, key: str, stored: list[Any]) -> Run:
    entered_at, _, id = key.partition(".")
    since, draw, holdout, variables, *about = stored[_ENTRY]
    number, at, _, version, step, began, until, came, reason, interrupted = stored[_NEWEST]
    return Run(
        journey,
        id,
        int(entered_at, 16),
        since,
        draw,
        holdout,
        variables,
        about[0] if about else None,
        number,
        at,
        version,
        step,
        began,
        until,
        came,
        reason,
        interrupted,
    )


# --- the fold -------------------------------------------------------------------------------


def _fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    if event.type in RUN_EVENTS:
        return _fold_run(state, recorded)
    if event.type in (JOURNEY_PAUSED, JOURNEY_RESUMED):
        return _fold_pause(state, recorded)
    given = event.properties.get("data") if event.type == EFFECT_WITHDRAWN else event.properties
    template = given.get("template") if type(given) is dict else None
    if not _is_name(template):
        return None
    return _note_mail(state, template, _SENT if event.type == MAIL_SENT else _SKIPPED, event.occurred_at)


def _fold_run(state: State, recorded: Recorded) -> State | None:
    event, given = recorded.event, recorded.event.properties
    journey, id, entered_at = given.get("journey"), given.get("run"), _time(given.get("entered_at"))
    if not _is_name(journey) or not _fits(id, _RUN) or entered_at <= 0:
        return None
    newest = _newest(recorded)
    if newest is None:
        return None
    member = "runs" if key_of(given.get("key")) is None else "keyed"
    runs = state.setdefault(member, {}).setdefault(journey, {})
    stored = runs.setdefault(_key(entered_at, id), [None, newest])
    stored[_NEWEST] = max(stored[_NEWEST], newest)
    if event.type == JOURNEY_ENTERED:
        entry = _entry(given)
        stored[_ENTRY] = entry if stored[_ENTRY] is None else min(stored[_ENTRY], entry, key=repr)
    _bounded(runs, _RUNS_MAX if member == "runs" else KEYED_RUNS_MAX)
    keep_smallest(state[member], _JOURNEYS_MAX)
    for mail in _mails(given):
        _note_mail(state, mail, _HANDED, event.occurred_at)
    return state


def _newest(recorded: Recorded) -> list[Any] | None:
    """What the newest event of a run says of it, in a form that compares: of two the larger one is newer."""
    given = recorded.event.properties
    number, version, step, reason = (given.get(name) for name in ("n", "version", "step", "reason"))
    if type(number) is not int or type(version) is not int or not _fits(step, _STEP):
        return None
    if not 0 <= number < _NUMBER_MAX or not 0 < version < _NUMBER_MAX:
        return None
    ended = (reason if type(reason) is str and reason else "left")[:100] if _ends(recorded) else ""
    began, until = _time(given.get("began")), _time(given.get("until"))
    return [
        number,
        recorded.event.occurred_at,
        recorded.id,
        version,
        step,
        began,
        until,
        given.get("came") is True,
        ended,
        given.get("interrupted") is True,
    ]


def _ends(recorded: Recorded) -> bool:
    return recorded.event.type == JOURNEY_EXITED or recorded.event.properties.get("reason") is not None


def _entry(given: Mapping[str, Any]) -> list[Any]:
    draw, variables = given.get("draw"), given.get("variables")
    return [
        _time(given.get("since")),
        draw if type(draw) is int and 0 <= draw < 1 << 16 else 0,
        given.get("holdout") is True,
        bounded_variables(variables if type(variables) is dict else {}),
        *([key] if (key := key_of(given.get("key"))) is not None else ()),
    ]


def key_of(value: Any) -> Key:
    """The key that a value is; None where it can be none."""
    return value if type(value) in (str, int, float) and value != "" and _is_small(value) else None


def bounded_variables(given: Mapping[str, Any]) -> dict[str, Any]:
    """The variables that a run may have: so many, with plain values that are not too large."""
    variables = {name: given[name] for name in sorted(given, key=str) if _is_name(name) and _is_small(given[name])}
    return dict([*variables.items()][:JOURNEY_VARIABLES_MAX])


def _is_small(value: Any) -> bool:
    if type(value) is str:
        return len(value.encode("utf-8", "replace")) <= JOURNEY_VARIABLE_BYTES_MAX
    return type(value) in (bool, float) or (type(value) is int and -(1 << 63) <= value < 1 << 63)


def _mails(given: Mapping[str, Any]) -> Iterable[str]:
    """The templates of the mails that an event says were handed over."""
    mails = given.get("mails") if given.get("holdout") is not True else None
    for mail in mails if type(mails) is list else ():
        if type(mail) is dict and _is_name(mail.get("template")):
            yield mail["template"]


def _note_mail(state: State, template: str, what: int, at: int) -> State:
    stored = state["mails"].setdefault(template, [0, 0, 0])
    stored[what] = max(stored[what], at)
    keep_smallest(state["mails"], _TEMPLATES_MAX)
    return state


def _fold_pause(state: State, recorded: Recorded) -> State | None:
    journey = recorded.event.properties.get("journey", "")
    # What wakes the people of a whole journey says nothing about a pause of their own.
    if (journey != "" and not _is_name(journey)) or recorded.event.properties.get("whole") is True:
        return None
    change = [recorded.event.occurred_at, recorded.id, recorded.event.type == JOURNEY_PAUSED]
    state["paused"][journey] = max(state["paused"].get(journey, change), change)
    keep_smallest(state["paused"], _JOURNEYS_MAX)
    return state


def _is_name(value: Any) -> TypeGuard[str]:
    return _fits(value, NAME)


def _fits(value: Any, pattern: re.Pattern[str]) -> TypeGuard[str]:
    return type(value) is str and pattern.fullmatch(value) is not None


def _time(value: Any) -> int:
    """Microseconds of a time as the events tell it; 0 for anything else."""
    if type(value) is not str:
        return 0
    try:
        return parse_time(value)
    except InvalidValue:
        return 0


def _bounded(runs: dict[str, Any], most: int) -> dict[str, Any]:
    # Whatever is left out here has so many later ones before it and can never come back.
    while len(runs) > most:
        del runs[min(runs)]
    return runs


# --- merging --------------------------------------------------------------------------------


def merge(first: State, second: State) -> State:
    """The state of the union of two people's events."""
    keyed = merge_entries(first.get("keyed", {}), second.get("keyed", {}), _merge_keyed)
    return {
        **({"keyed": keep_smallest(keyed, _JOURNEYS_MAX)} if keyed else {}),
        "runs": keep_smallest(merge_entries(first["runs"], second["runs"], _merge_runs), _JOURNEYS_MAX),
        "paused": keep_smallest(merge_entries(first["paused"], second["paused"], max), _JOURNEYS_MAX),
        "mails": keep_smallest(merge_entries(first["mails"], second["mails"], _larger), _TEMPLATES_MAX),
    }


def _merge_runs(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return _bounded(merge_entries(first, second, _merge_run), _RUNS_MAX)


def _merge_keyed(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return _bounded(merge_entries(first, second, _merge_run), KEYED_RUNS_MAX)


def _merge_run(first: list[Any], second: list[Any]) -> list[Any]:
    entries = [stored[_ENTRY] for stored in (first, second) if stored[_ENTRY] is not None]
    entry = min(entries, key=repr) if entries else None
    return [entry, max(first[_NEWEST], second[_NEWEST])]


def _larger(first: list[int], second: list[int]) -> list[int]:
    return [*map(max, first, second)]


# --- the view and the rows ------------------------------------------------------------------


def _view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
    active = {journey: run for journey in journeys_in(state) if (run := active_run(state, journey)) is not None}
    return {
        "active": {journey: _shown(run) | {"paused": is_paused(state, journey)} for journey, run in active.items()},
        "ended": {journey: ended for journey in journeys_in(state) if (ended := _ended(state, journey))},
        "sent": {
            name: at for name, stored in sorted(state["mails"].items()) if (at := _shown_time(mail_counts(stored)))
        },
        "paused": sorted(journey for journey, change in state["paused"].items() if change[2]),
    }


def _ended(state: State, journey: str) -> dict[str, Any]:
    return {run.id: _shown(run) for run in runs_of(state, journey) if run.reason}


def _shown(run: Run) -> dict[str, Any]:
    shown = {
        "journey": run.journey,
        "run": run.id,
        "version": run.version,
        "entered_at": _shown_time(run.entered_at),
        "variables": run.variables,
        "holdout": run.holdout,
        **({} if run.key is None else {"key": run.key}),
    }
    if run.reason:
        return {**shown, "ended_at": _shown_time(run.at), "reason": run.reason, "interrupted": run.interrupted}
    return {**shown, "step": run.step, "until": _shown_time(run.until)}


def _shown_time(at: int) -> str | None:
    return format_time(at) if at else None


def partition(workspace: str, journey: str) -> str:
    """The partition of the people in a journey."""
    return f"{workspace}/{journey}"


def _rows(state: State, workspace: str, person: str) -> Iterable[Row]:
    for run in active_runs(state):
        value = f"{run.id}.{run.entered_at}.{run.until}.{run.version}"
        own = person if run.key is None else f"{person}.{run.id}"
        yield Row(TABLE, partition(workspace, run.journey), f"{run.step}/{own}", value.encode())


class Entry(NamedTuple):
    """A row: somebody in a journey."""

    step: str
    person: str
    run: str
    entered_at: int
    until: int
    version: int
    sort: str
    """Where its row stands: a person has several in a journey with a key."""


def entry_of(sort: str, value: bytes) -> Entry:
    """What a row says."""
    step, _, own = sort.rpartition("/")
    run, entered_at, until, version = value.decode().split(".")
    return Entry(step, own.partition(".")[0], run, int(entered_at), int(until), int(version), sort)


_OF_RUN = values("journey", "run", "key", "version", "entered_at", "holdout") | {"variables": None}
_ACTIVE = Parts(_OF_RUN | values("step", "until", "paused"))
_ENDED = Parts(_OF_RUN | values("ended_at", "reason", "interrupted"))
_RUNS = Parts(named="", inside=_ENDED)
_PARTS = Parts({
    "active": Parts(named="journey", inside=_ACTIVE), "ended": Parts(named="journey", inside=_RUNS),
    "sent": Parts(named="template", inside=VALUE), "paused": VALUE,
})  # fmt: skip

PROJECTION = Projection(
    name=JOURNEYS,
    version=1,
    handles=RUN_EVENTS | {JOURNEY_PAUSED, JOURNEY_RESUMED, MAIL_SENT, MAIL_SKIPPED, EFFECT_WITHDRAWN},
    empty=empty,
    fold=_fold,
    view=_view,
    depends=Depends(parts=_PARTS),
    index=Index(rows=_rows, tables=(TABLE,)),
    faster=Faster(merge=merge),
)
"""It commutes: each event of a run says all that the newest one has to, and numbers say which one that is."""

JOURNEY_TABLE = StoreTable(TABLE, "state_rows", shown_in="journeys")
JOURNEYS_FILE = PersonFile(
    "journeys",
    "Series of messages",
    "Series of messages that you are in or were in, and how far.",
    joined(shown_views(JOURNEYS), shown_events(*RUN_EVENTS, *REQUESTS)),
    (JOURNEYS,),
)
