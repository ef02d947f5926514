"""Entries of the audit log in words: what somebody did, as a sentence, and to whom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from threadline.kernel.operation import Operation
from threadline.surfaces.console.formats import label, number, short, words
from threadline.surfaces.console.signing_in import OWN_ACTS

SURFACE_NAMES = {"http": "API", "console": "console", "mcp": "an agent", "cli": "command line", "python": "Python"}
"""Surface -> what a page calls it."""
PERSON = "/v1/people/{id}"
"""How the paths of operations on one person begin."""
DONE = "done"
_PLACE, _CLAUSE = re.compile(r"\{(\w+)\}"), re.compile(r"[:;,.]")
_LEFT_OUT = re.compile(r"(text|object|list) of \d+")
"""What the audit log has in the place of what it leaves out."""

_KINDS = frozenset({"section", "kind", "type", "outcome"})
"""Members that say what something is, in words of ours."""


def audit_sentence(entry: Mapping[str, Any], operation: Operation | None) -> str:
    """What was done, as a sentence; what was not done because it was refused or has failed says so."""
    patterns = operation.done if operation is not None else OWN_ACTS.get(entry["operation"], ())
    sentence = next(_sentences(patterns, entry), "") or _summary(entry, operation)
    return sentence if entry["outcome"] == DONE else f"Not done: {sentence[:1].lower()}{sentence[1:]}"


def _sentences(patterns: Iterable[str], entry: Mapping[str, Any]) -> Iterator[str]:
    members = {**entry["given"], **entry["object"]}
    for pattern in patterns:
        values = {name: _shown(name, members.get(name)) for name in _PLACE.findall(pattern)}
        if all(values.values()):
            yield pattern.format_map(values)


def _shown(name: str, value: Any) -> str:
    """A value as it stands in a sentence; empty where there is none, or none that can be said."""
    if isinstance(value, list):
        parts = [_shown(name, item) for item in value]
        return short(", ".join(parts), 80) if parts and all(parts) else ""
    if value is None or isinstance(value, dict) or (isinstance(value, str) and _LEFT_OUT.fullmatch(value)):
        return ""
    if not isinstance(value, str):
        return number(value)
    return words(value.removesuffix("s") if name == "section" else value) if name in _KINDS else short(value, 80)


def _summary(entry: Mapping[str, Any], operation: Operation | None) -> str:
    """What the operation is for, and what it was about."""
    does = label(entry["operation"]) if operation is None else _CLAUSE.split(operation.summary)[0]
    about = [text for name, value in entry["object"].items() if (text := _shown(name, value))]
    return f"{does}: {', '.join(about)}" if about else does


def person_of(entry: Mapping[str, Any], operation: Operation | None) -> str:
    """Whom an entry is about, by an id or an identifier; empty where it is about nobody."""
    is_about = operation is not None and operation.path.startswith(PERSON)
    return _shown("id", entry["object"].get("id")) if is_about else ""
