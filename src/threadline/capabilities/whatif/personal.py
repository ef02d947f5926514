"""What saved what-ifs have of a person: the samples that name them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from threadline.capabilities.whatif.saved_results import NEWEST, SAVED, Saved, all_saved, packed, unpacked
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.personal import PersonFile, StoreTable, Subject, shown_time
from threadline.kernel.store import Item, Key


def _named(subject: Subject) -> Iterator[tuple[Saved, list[dict[str, Any]]]]:
    """The saved results with samples of the person, and these."""
    after = ""
    while page := all_saved(subject, after, PAGE_ITEMS_MAX):
        for saved in page:
            samples = [each for each in saved.view.get("samples", ()) if each.get("person") in subject.ids]
            if samples:
                yield saved, samples
        after = page[-1].id


def _keys(subject: Subject) -> Iterator[Key]:
    return (Key(SAVED, subject.workspace, saved.id) for saved, _ in _named(subject))


def _without(subject: Subject, item: Item) -> bytes:
    """The result without the samples of the person: its counts name nobody."""
    saved = unpacked(item.value)
    others = [each for each in saved.view.get("samples", ()) if each.get("person") not in subject.ids]
    return packed(replace(saved, view={**saved.view, "samples": others}))


def _lines(subject: Subject) -> Iterator[dict[str, Any]]:
    for saved, samples in _named(subject):
        yield from ({"what_if": saved.id, "saved_at": shown_time(saved.at), **each} for each in samples)


SAVED_TABLE = StoreTable(SAVED, "items", shown_in="what_ifs", keys=_keys, without=_without)
NEWEST_TABLE = StoreTable(NEWEST, "nobody", why="which result of a rule is the newest")
WHAT_IFS_FILE = PersonFile(
    "what_ifs", "Trials of rules", "Rules that were tried on what happened in the past, with you among the examples.",
    _lines,
)  # fmt: skip
