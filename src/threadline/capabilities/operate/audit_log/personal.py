"""What the audit log has of a person: the names by which operators have asked something about them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from threadline.kernel.audit import AUDIT_LOG, AuditEntry, decode_entry, encode_entry
from threadline.kernel.event import Identifier, identifier_named
from threadline.kernel.personal import StoreTable, Subject
from threadline.kernel.store import Item, Key, query_pages

ERASED = "erased"
_WITHIN_MIN = 6
"""Characters of a name that is looked for within a longer text: a shorter one is found in texts of others as well."""


def _keys(subject: Subject) -> Iterator[Key]:
    # The whole log of the workspace is read, as the rejected log is: erasing somebody is rare, noting a call is not.
    is_named = _Named(subject)
    for item in query_pages(subject.engine.store, AUDIT_LOG, subject.workspace):
        if any(map(is_named, _texts(decode_entry(item.value, "")))):
            yield item.key


def _without(subject: Subject, item: Item) -> bytes:
    """The entry without what it was about, and without what was given: that belongs to the person as well."""
    entry = decode_entry(item.value, "")
    is_named = _Named(subject)
    object = {name: ERASED if is_named(value) else value for name, value in entry.object.items()}
    return encode_entry(msgspec.structs.replace(entry, object=object, given={}))


class _Named:
    """Whether a text names the person."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._kinds = tuple(subject.engine.catalogue.rules.kinds)
        names = [*subject.ids, *(identifier.value for identifier in subject.person.identifiers.values())]
        self._names = [name for name in names if len(name) >= _WITHIN_MIN]

    def __call__(self, text: str) -> bool:
        subject = self._subject
        return (
            any(name in text for name in self._names)
            or subject.has(identifier_named(text))
            or any(subject.has(Identifier(kind, text)) for kind in self._kinds)
        )


def _texts(entry: AuditEntry) -> Iterator[str]:
    values: list[Any] = [*entry.object.values(), *entry.given.values()]
    for value in values:
        yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))


AUDIT_LOG_TABLE = StoreTable(
    AUDIT_LOG,
    "items",
    why="what operators did, and whom they named; nothing that is known of the person",
    keys=_keys,
    without=_without,
)
