"""What what-ifs have of a person: samples, failures and lists that name them, in results and in what runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from threadline.capabilities.decide.rules.what_if_results import NEWEST, SAVED, Saved, packed, unpacked
from threadline.capabilities.decide.whatif.job import PROGRESS, Progress, progress_bytes, progress_from
from threadline.kernel.personal import PersonFile, StoreTable, Subject
from threadline.kernel.store import Item, query_pages

_GONE: Any = object()


def _without_person(value: Any, names: frozenset[str]) -> Any:
    """Plain data without members, entries and objects that are about a person of these names."""
    if isinstance(value, dict):
        if value.get("person") in names:
            return _GONE
        parts = {name: _without_person(member, names) for name, member in value.items() if name not in names}
        return {name: part for name, part in parts.items() if part is not _GONE}
    if isinstance(value, list):
        return [part for item in value if (part := _without_person(item, names)) is not _GONE]
    return _GONE if isinstance(value, str) and value in names else value


def _names(subject: Subject) -> frozenset[str]:
    identifiers = subject.person.identifiers.values()
    return frozenset({*subject.ids, *map(str, identifiers), *(identifier.value for identifier in identifiers)})


def _plain(item: Item) -> Any:
    return msgspec.to_builtins(unpacked(item.value) if item.key.table == SAVED else progress_from(item.value))


def _naming(subject: Subject, table: str) -> Iterator[tuple[Item, Any]]:
    """The items of a table that name the person, as plain data."""
    names = _names(subject)
    for item in query_pages(subject.engine.store, table, subject.workspace):
        plain = _plain(item)
        if _without_person(plain, names) != plain:
            yield item, plain


def _without(subject: Subject, item: Item) -> bytes:
    """The result without the person: its counts name nobody."""
    plain = _without_person(_plain(item), _names(subject))
    if item.key.table == SAVED:
        return packed(msgspec.convert(plain, Saved))
    return progress_bytes(msgspec.convert(plain, Progress))


def _lines(subject: Subject) -> Iterator[dict[str, Any]]:
    for item, plain in (entry for table in (SAVED, PROGRESS) for entry in _naming(subject, table)):
        view = plain["view"]
        samples = [sample for sample in view["samples"] if sample.get("person") in subject.ids]
        failures = [why for person, why in view["failures"].items() if person in subject.ids]
        asked = {name: value for name, value in view["asked"].items() if name != "people"}
        yield {"what_if": item.key.sort, "asked": asked, "samples": samples, "failures": failures}


def _table(name: str) -> StoreTable:
    return StoreTable(
        name,
        "items",
        shown_in="what_ifs",
        without=_without,
        keys=lambda subject: (item.key for item, _ in _naming(subject, name)),
    )


SAVED_TABLE = _table(SAVED)
PROGRESS_TABLE = _table(PROGRESS)
NEWEST_TABLE = StoreTable(NEWEST, "nobody", why="which result of a rule is the newest")
WHAT_IFS_FILE = PersonFile(
    "what_ifs",
    "Trials of rules",
    "Rules that were tried on what happened in the past, with you among the examples.",
    _lines,
)
