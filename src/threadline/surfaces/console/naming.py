"""What to call the people of a page: one question for all of them, whatever screen they are on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from threadline.kernel.errors import ThreadlineError
from threadline.kernel.event import is_thread_id
from threadline.surfaces.console.asking import Asking

PEOPLE_MAX = 500
"""Of a page; who comes after them is shown by an identifier."""
REF_LENGTH_MAX = 1_000
_MEMBERS = ("person", "people", "thread", "survivor", "merged", "p")
"""Members of answers that say who somebody is, by an id, a thread or an identifier, or that hold such
people."""
_PLAIN = frozenset({str, int, float, bool, type(None)})
"""Most of what a page shows. To look into each of them took as long as to read the page."""


def with_names(asking: Asking, shown: Mapping[str, Any]) -> dict[str, Any]:
    """What a template shows, and ``names``: id, thread or identifier -> ``id`` and ``name`` of the person."""
    wanted = list(dict.fromkeys(_people(shown)))[:PEOPLE_MAX]
    return {**shown, "names": _names(asking, wanted) if wanted else {}}


def _names(asking: Asking, wanted: list[str]) -> Any:
    calls = len(asking.calls)
    try:
        return asking.ask_or({}, "people_names", people=wanted).get("people", {})
    except ThreadlineError:  # such as somebody whose events are damaged: identifiers do
        return {}
    finally:
        del asking.calls[calls:]  # what people are called says nothing about the page to whoever repeats it


def _people(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for item in value:
            if type(item) not in _PLAIN:
                yield from _people(item)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if name in _MEMBERS:
                yield from _ids(item)
            if type(item) not in _PLAIN:
                yield from _people(item)


def _ids(value: Any) -> Iterator[str]:
    several = value if isinstance(value, list) else [value]
    for entry in several:
        id = entry.get("id") if isinstance(entry, Mapping) else entry
        if isinstance(id, str) and (is_thread_id(id) or 1 < id.find(":") < len(id) - 1 <= REF_LENGTH_MAX):
            yield id


def called(it: Any, names: Any = None) -> str:
    """What to call a person, or whose an entry of a list is: by ``names``, else by the strongest identifier given."""
    entry = it if isinstance(it, Mapping) else {"person": it}
    id = str(entry.get("person") or entry.get("thread") or entry.get("id") or "")
    known = names.get(id) if isinstance(names, Mapping) else None
    if known:
        return str(known["name"])
    for identifier in entry.get("identifiers") or ():
        return (
            str(identifier.get("value", "")) if isinstance(identifier, Mapping) else str(identifier).partition(":")[2]
        )
    return f"{id[:12]}…" if is_thread_id(id) else id
