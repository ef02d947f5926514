"""Tags of a person: those that single events add and remove, and those that a list of an identify brings.

A list is all that its sender has to say: a tag that an earlier list brought and the newest one lacks is gone. What was
added by itself is no list's business and stays until it is removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from threadline.capabilities.profile.people.events import IDENTIFY, TAG_ADDED, TAG_REMOVED
from threadline.kernel.event import Event
from threadline.kernel.limits import IDENTIFIER_LENGTH_MAX, TAGS_PER_PERSON_MAX
from threadline.kernel.store import Key, Store, beyond

TAGS = "tag"
"""Table of who has which tag: a workspace's rows by tag and person, so that a range of it is a tag's people."""

LIST = "tags"
"""The property of an identify that is a list of tags and no trait."""

_END = "\n"
"""Ends a tag in the key of a row of `TAGS`; the person follows."""
_AFTER = "\v"
"""The character behind `_END`: a tag and this come after all rows of the tag."""
_IN_KEY = str.maketrans({_END: "\v1", "\v": "\v2"})
"""What stands in a key for a line break, which ends a tag there, and for the sign of that."""


def is_tag(text: Any) -> bool:
    """Whether a value can be a tag: it becomes part of a row's key, and keys are bounded in bytes of UTF-8."""
    return isinstance(text, str) and 0 < len(_in_key(text).encode("utf-8", "surrogatepass")) <= IDENTIFIER_LENGTH_MAX


def listed_in(event: Event) -> list[str] | None:
    """The tags that the list of an identify names, sorted; None where it has no list. A text is a list of one."""
    if event.type != IDENTIFY or LIST not in event.properties:
        return None
    value = event.properties[LIST]
    if value is None:
        return []
    texts = value if isinstance(value, list) else [value] if isinstance(value, str) else None
    return None if texts is None else sorted({text for text in texts if is_tag(text)})[:TAGS_PER_PERSON_MAX]


def named_in(event: Event) -> Sequence[str]:
    """The tags that an event gives to its person."""
    if event.type == TAG_ADDED and is_tag(event.properties.get("tag")):
        return (event.properties["tag"],)
    return listed_in(event) or ()


def changed_in(event: Event) -> tuple[str, bool] | None:
    """The tag that an event adds (True) or removes; None: it does neither."""
    tag = event.properties.get("tag") if event.type in (TAG_ADDED, TAG_REMOVED) else None
    return (tag, event.type == TAG_ADDED) if isinstance(tag, str) and is_tag(tag) else None


Mark = Sequence[Any]
"""[occurred_at, event id, value] of the newest event that says it."""


def source_of(tag: str, mark: Mark | None, listed: Mark | None) -> Mark | None:
    """By what somebody has a tag: its newest single change, or the newest list; None: they do not have it."""
    if mark is not None and mark[2]:
        return mark
    if not listed or tag not in listed[2]:
        return None
    is_removed_since = mark is not None and (mark[0], mark[1]) > (listed[0], listed[1])
    return None if is_removed_since else listed


def present(marks: Mapping[str, Mark], listed: Mark | None) -> dict[str, Mark]:
    """The tags that somebody has, in order, each with its source; at most as many as a person may have."""
    sources = {tag: source_of(tag, marks.get(tag), listed) for tag in sorted({*marks, *(listed[2] if listed else ())})}
    there = ((tag, source) for tag, source in sources.items() if source is not None)
    return dict(islice(there, TAGS_PER_PERSON_MAX))


def tag_key(workspace: str, tag: str, person: str) -> Key:
    """The key of the row that says that a person has a tag."""
    return Key(TAGS, workspace, f"{_in_key(tag)}{_END}{person}")


def tagged(store: Store, workspace: str, tag: str, after: str, limit: int) -> list[str]:
    """The ids of the people who have a tag, after an id, at most ``limit``."""
    name = _in_key(tag)
    rows = store.query(TAGS, workspace, f"{name}{_END}{beyond(after)}", f"{name}{_AFTER}", limit)
    return [row.key.sort.rpartition(_END)[2] for row in rows]


def tags_in_use(store: Store, workspace: str, most: int) -> Iterator[str]:
    """The tags that somebody in a workspace has, in order, at most ``most``: one short range read for each."""
    start = ""
    for _ in range(most):
        rows = store.query(TAGS, workspace, start, limit=1)
        if not rows:
            return
        name = rows[0].key.sort.rpartition(_END)[0]
        yield name.replace("\v1", _END).replace("\v2", "\v")
        start = name + _AFTER


def _in_key(tag: str) -> str:
    return tag.translate(_IN_KEY)
