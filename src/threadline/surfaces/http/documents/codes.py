"""Every code that an error or a rejected event can carry, with its meaning."""

from __future__ import annotations

from collections.abc import Iterator

from threadline.kernel.errors import EventRejected, ThreadlineError
from threadline.surfaces.http.answers import problem
from threadline.surfaces.http.events.rate import CODES as RATE_CODES
from threadline.wire.rejection import CODES

ENGINE_CODES = {
    "conflict": "the same key was used before with another payload; the first one stands",
    "erased": "a duplicate of an event that was erased: nothing is recorded",
    "fenced": "another process took over what this event would have settled",
    "person_too_large": "what is known of the person would no longer fit into one item of the store",
    "policy_failed": "a policy raised about its own timer, which stays and fires again later",
    "position_conflict": "the person is not at the position that was expected",
    "projection_failed": "a projection could not fold the event",
    "schema_violation": "the event's properties do not fit the schema that is declared for its type",
    "store_damaged": "it needs an event that is damaged, and can be sent in again once that is repaired",
    "too_many_changes": "the event would change more than one batch of the store can hold",
}
"""Codes of rejections that the engine gives beside those of the wires."""


def error_codes() -> list[tuple[str, int | str, str]]:
    """(code, HTTP status, meaning) of all, by code; a status of ``event`` stands for a rejection of one event."""
    by_code: dict[str, tuple[str, int | str, str]] = {}
    for code, meaning in {**CODES, **ENGINE_CODES, **RATE_CODES}.items():
        by_code[code] = (code, "event", meaning)
    assert problem.Internal.code  # importing it is what puts the errors of this surface into the tree
    for kind in _tree(ThreadlineError):
        meaning = " ".join((kind.__doc__ or "").split()).rstrip(".")
        meaning = meaning[0].lower() + meaning[1:]
        if kind.code in by_code:
            meaning = f"{meaning}. Of an event: {by_code[kind.code][2]}"
        by_code[kind.code] = (kind.code, kind.status, meaning)
    return sorted(by_code.values())


def _tree(kind: type[ThreadlineError]) -> Iterator[type[ThreadlineError]]:
    for below in kind.__subclasses__():
        # Those that only add to the error above, such as how long to wait, share its code.
        if below is not EventRejected and "code" in vars(below):
            yield below
        yield from _tree(below)
