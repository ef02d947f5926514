"""What is known of a person as such: traits, tags, groups, identifiers in use, first and last activity.

Every fold here commutes: "newest" compares (occurred_at, event id), "first" and "last" are minimum and maximum,
and limits keep the smallest names, so that no arrival order shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import add
from typing import Any

from threadline.capabilities.profile.people.events import GROUP, IDENTIFY, TAG_ADDED, TAG_REMOVED
from threadline.capabilities.profile.people.tags import (
    LIST,
    TAGS,
    changed_in,
    listed_in,
    present,
    source_of,
    tag_key,
)
from threadline.kernel.event import Recorded
from threadline.kernel.limits import (
    EVENT_TYPES_COUNTED_MAX,
    GROUPS_PER_PERSON_MAX,
    IDENTIFIER_LENGTH_MAX,
    TAGS_PER_PERSON_MAX,
    TRAITS_PER_PERSON_MAX,
)
from threadline.kernel.merging import keep_smallest, merge_entries, newest
from threadline.kernel.projection import Depends, Faster, Index, Projection, Row
from threadline.kernel.store import Key, Store, beyond
from threadline.kernel.time import format_time
from threadline.kernel.view_parts import VALUE, Parts, values

GROUPS = "group"
"""Table of the people of a group."""

_PROFILE_MAX = {"traits": TRAITS_PER_PERSON_MAX, "tags": TAGS_PER_PERSON_MAX, "groups": GROUPS_PER_PERSON_MAX}

State = dict[str, Any]
"""``traits``, ``tags`` and ``groups``: `Marks`; ``listed``: [occurred_at, event id, tags] of the newest list, or []."""

Marks = dict[str, list[Any]]
"""Name -> [occurred_at, event id, value] of the newest word on it; a null value is a removal that is remembered."""


def _newest(marks: Marks, name: str, recorded: Recorded, value: Any) -> bool:
    """Keep the newest word on a name; answers whether its value is another one now."""
    at, id = recorded.event.occurred_at, recorded.id
    stored = marks.get(name)
    if stored is not None:
        if (at, id) < (stored[0], stored[1]):
            return False
        marks[name] = [at, id, value]
        return not _is_same(stored[2], value)
    marks[name] = [at, id, value]
    return True


def _is_same(first: Any, second: Any) -> bool:
    """Whether two values are surely shown alike: to Python 1 equals true, and 0.0 equals -0.0."""
    return first.__class__ is second.__class__ and first.__class__ in _PLAIN and bool(first == second)


_PLAIN = (str, int, bool, type(None))


def _is_name(text: str) -> bool:
    # Bytes, not characters: it becomes part of a row's key, and keys are bounded in UTF-8.
    return 0 < len(text.encode("utf-8", "surrogatepass")) <= IDENTIFIER_LENGTH_MAX


def _profile_fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    part, properties, touched = "traits", event.properties, False
    if event.type == IDENTIFY:
        if LIST in properties:
            touched = _keep_list(state, recorded)
            properties = {name: value for name, value in properties.items() if name != LIST}
    elif event.type == GROUP:
        part, properties = "groups", {}
        if _is_name(event.object_ref):
            properties = {event.object_ref: None if event.properties.get("left") is True else event.properties}
    else:
        changed = changed_in(event)
        part, properties = "tags", {} if changed is None else {changed[0]: changed[1] or None}
    marks = state[part]
    for name, value in properties.items():
        touched |= _newest(marks, name, recorded, value)
    if len(marks) > _PROFILE_MAX[part]:
        # Once for all names of an event: it may bring hundreds.
        for name in sorted(marks)[_PROFILE_MAX[part] :]:
            del marks[name]
    return state if touched else None


def _keep_list(state: State, recorded: Recorded) -> bool:
    """Keep the newest list of tags; answers whether it is another one now."""
    listed = listed_in(recorded.event)
    stored = state["listed"]
    order = [recorded.event.occurred_at, recorded.id]
    if listed is None or (stored and order < stored[:2]):
        return False
    state["listed"] = [*order, listed]
    # The tags may be the same, the time since when they are is another one.
    return True


def _present(marks: Marks) -> dict[str, Any]:
    return {name: stored[2] for name, stored in sorted(marks.items()) if stored[2] is not None}


def _profile_view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
    return {
        "traits": _present(state["traits"]),
        "tags": list(present(state["tags"], state["listed"])),
        "groups": _present(state["groups"]),
    }


def tagged_since(state: Mapping[str, Any], tag: str) -> int | None:
    """The time of the newest event by which somebody has a tag, by their state; None: they do not have it."""
    source = source_of(tag, state["tags"].get(tag), state["listed"])
    return None if source is None else int(source[0])


def grouped(store: Store, workspace: str, group: str, after: str, limit: int) -> list[str]:
    """The ids of the people of a group, after an id, at most ``limit``."""
    return [row.key.sort for row in store.query(GROUPS, f"{workspace}/{group}", beyond(after), limit=limit)]


def group_key(workspace: str, group: str, person: str) -> Key:
    """The key of the row that says that a person is in a group."""
    return Key(GROUPS, f"{workspace}/{group}", person)


def _profile_rows(state: State, workspace: str, person: str) -> Iterable[Row]:
    for tag in present(state["tags"], state["listed"]):
        yield Row(*tag_key(workspace, tag, person))
    for group in _present(state["groups"]):
        yield Row(*group_key(workspace, group, person))


def _profile_merge(first: State, second: State) -> State:
    for part, most in _PROFILE_MAX.items():
        first[part] = keep_smallest(merge_entries(first[part], second[part], newest), most)
    lists = [state["listed"] for state in (first, second) if state["listed"]]
    first["listed"] = max(lists, key=lambda listed: listed[:2], default=[])
    return first


PROFILE = Projection(
    name="profile",
    version=3,
    handles=frozenset({IDENTIFY, GROUP, TAG_ADDED, TAG_REMOVED}),
    empty=lambda: {"traits": {}, "tags": {}, "groups": {}, "listed": []},
    fold=_profile_fold,
    view=_profile_view,
    depends=Depends(parts=Parts(values("tags") | {"traits": None, "groups": None})),
    index=Index(rows=_profile_rows, tables=(TAGS, GROUPS)),
    faster=Faster(merge=_profile_merge),
)

_USES_MAX = 200
"""Identifiers whose use is remembered per person: own ones and those that were refused."""


def _uses_fold(state: dict[str, list[int]], recorded: Recorded) -> dict[str, list[int]] | None:
    at = recorded.event.occurred_at
    if not recorded.event.is_activity:
        return None  # nobody used it: Threadline itself put the event into the thread
    touched = None
    for identifier in recorded.event.identifiers:
        name = f"{identifier.kind}:{identifier.value}"
        stored = state.get(name)
        if stored is None:
            state[name] = [at, at]
            if len(state) > _USES_MAX:
                del state[max(state)]
        elif at > stored[1]:
            stored[1] = at
        elif at < stored[0]:
            stored[0] = at
        else:
            continue
        touched = state
    return touched


def _uses_view(state: dict[str, list[int]], now: int, edges: list[Recorded]) -> dict[str, Any]:
    return {
        name: {"first_used_at": format_time(first), "last_used_at": format_time(last)}
        for name, (first, last) in sorted(state.items())
    }


def _uses_merge(first: dict[str, list[int]], second: dict[str, list[int]]) -> dict[str, list[int]]:
    return keep_smallest(merge_entries(first, second, _span), _USES_MAX)


def _span(first: list[int], second: list[int]) -> list[int]:
    return [min(first[0], second[0]), max(first[1], second[1])]


IDENTIFIERS = Projection(
    name="identifiers",
    version=1,
    handles=None,
    empty=dict,
    fold=_uses_fold,
    view=_uses_view,
    depends=Depends(parts=Parts(named="", inside=Parts(values("first_used_at", "last_used_at")))),
    faster=Faster(merge=_uses_merge),
    carries={"": ""},
)


def _activity_fold(state: list[Any], recorded: Recorded) -> list[Any]:
    event = recorded.event
    at = event.occurred_at
    if not event.is_activity:
        pass  # it is counted, but the person was not seen: Threadline itself put it into the thread
    elif state[0] is None:
        state[0] = state[1] = at
    elif at > state[1]:
        state[1] = at
    elif at < state[0]:
        state[0] = at
    counts = state[2]
    seen = counts.get(event.type)
    if seen is not None:
        counts[event.type] = seen + 1
    else:
        counts[event.type] = 1
        if len(counts) > EVENT_TYPES_COUNTED_MAX:
            state[3] += counts.pop(max(counts))
    return state


def _activity_view(state: list[Any], now: int, edges: list[Recorded]) -> dict[str, Any]:
    first, last, counts, second = state
    return {
        "first_seen_at": None if first is None else format_time(first),
        "last_seen_at": None if last is None else format_time(last),
        "events": sum(counts.values()) + second,
        "events_by_type": dict(sorted(counts.items())),
        "events_of_other_types": second,
    }


def _activity_merge(left: list[Any], right: list[Any]) -> list[Any]:
    spans = [state[:2] for state in (left, right) if state[0] is not None]
    first, last = _span(spans[0], spans[-1]) if spans else (None, None)
    counts, rest = merge_entries(left[2], right[2], add), left[3] + right[3]
    for type in sorted(counts)[EVENT_TYPES_COUNTED_MAX:]:
        rest += counts.pop(type)
    return [first, last, counts, rest]


_ACTIVITY_PARTS = Parts(
    values("first_seen_at", "last_seen_at", "events", "events_of_other_types")
    | {"events_by_type": Parts(named="", inside=VALUE)}
)
ACTIVITY = Projection(
    name="activity",
    version=1,
    handles=None,
    empty=lambda: [None, None, {}, 0],
    fold=_activity_fold,
    view=_activity_view,
    depends=Depends(parts=_ACTIVITY_PARTS),
    faster=Faster(merge=_activity_merge),
    carries={"": ""},
)
