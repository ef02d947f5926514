"""What the actions of a rule that matched come to: its status, what it stores, what it wishes for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from threadline.capabilities.decide.rules.actions import Action
from threadline.capabilities.foundation.conditions import Path
from threadline.capabilities.foundation.conditions.placeholders import Look
from threadline.kernel.canonical import canonical_json, standard_json
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import EVENT_BYTES_MAX

APPROVED, REJECTED, REVIEW = "Approved", "Rejected", "Review"
MATCHED, NO_MATCH, ERROR = "Matched", "NoMatch", "Error"
STATUSES = (APPROVED, REJECTED, REVIEW, MATCHED, NO_MATCH, ERROR)

_RESULTS = {"approve": APPROVED, "reject": REJECTED, "review": REVIEW}
"""What a stored result makes of the status; any other leaves it at `MATCHED`."""
_TOO_MUCH = f"the actions would take more than {EVENT_BYTES_MAX:,} bytes"


class Acted(NamedTuple):
    """What became of the actions."""

    status: str
    output: dict[str, Any]
    wished: list[dict[str, Any]]
    before: str
    after: str
    """What stands before and after the trace in what is hashed."""


def acted(status: str, output: dict[str, Any], wished: list[dict[str, Any]]) -> Acted:
    """Status, output and wishes, ready to be written. Raises `InvalidValue` for what has no form in JSON."""
    stored, wishes = standard_json(output), standard_json(wished)
    if len(stored) + len(wishes) > EVENT_BYTES_MAX:
        raise InvalidValue(_TOO_MUCH)
    before = f',"output":{stored.decode()},"status":"{status}","trace":'
    return Acted(status, output, wished, before, f',"wished":{wishes.decode()}}}')


def act(actions: Sequence[Action], reckoned: dict[str, Any], look: Look) -> Acted:
    """Fill the actions in. ``reckoned`` is the output of the body, over which the rule may store its own.

    Raises `InvalidValue` where an action can do nothing with what it gets.
    """
    bounded = _bounded(look)
    wished = [{action.kind.name: action.filled(bounded)} for action in actions]
    stored = next((wish["store_decision"] for wish in wished if "store_decision" in wish), {})
    output = {**reckoned, **stored}
    result = output.get("result")
    status = _RESULTS.get(result.casefold(), MATCHED) if type(result) is str else MATCHED
    return acted(status, output, wished)


def _bounded(look: Look) -> Look:
    """The same, up to what all actions may take together.

    Everything that a placeholder finds is in what is written. A rule with thousands of them, of an event of 30 KB,
    would make gigabytes of text before those could be counted.
    """
    sizes: dict[Path, int] = {}
    left = EVENT_BYTES_MAX

    def bounded(path: Path) -> Any:
        nonlocal left
        value = look(path)
        if type(value) in (str, dict, list):
            if path not in sizes:
                sizes[path] = len(value) if type(value) is str else len(canonical_json(value))
            left -= sizes[path]
            if left < 0:
                raise InvalidValue(_TOO_MUCH)
        return value

    return bounded


UNMATCHED = acted(NO_MATCH, {}, [])
