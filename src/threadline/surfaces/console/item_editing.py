"""Items of a list in a text that is shown as a picture or a mail: chosen, copied, moved and removed by buttons."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from threadline.capabilities.foundation.definitions.nested_splicing import (
    Path,
    item_text,
    value_at,
    with_item,
    without,
)
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.reach.journeys.outline import path_of, path_text

EMPTIED = ("then", "else")
"""Lists that go when their last item does; the others may stay empty until there is one."""


class Drawn(NamedTuple):
    """A text that is being drawn."""

    text: str
    at: str
    """The path of the item that is chosen, or the point, with its sign; empty: all of it."""
    moving: str = ""
    """The path of the item that is being moved."""


def _chosen(drawn: Drawn, at: str) -> Drawn:
    return drawn._replace(at=at)


def _removed(drawn: Drawn, at: str) -> Drawn:
    return Drawn(_taken_out(drawn.text, path_of(at)), "")


def _copied(drawn: Drawn, at: str) -> Drawn:
    """A copy of an item right after it, without ids: no two items have the same."""
    *within, number = path_of(at)
    item = item_text(drawn.text, (*within, number))
    for path in _ids(value_of(item), ()):
        item = without(item, path)
    assert isinstance(number, int)
    path = (*within, number + 1)
    return Drawn(with_item(drawn.text, path, item), path_text(path))


def _raised(drawn: Drawn, at: str) -> Drawn:
    *within, number = path_of(at)
    assert isinstance(number, int)
    return moved(drawn, (*within, number), (*within, max(number - 1, 0)))


def _lowered(drawn: Drawn, at: str) -> Drawn:
    *within, number = path_of(at)
    assert isinstance(number, int)
    count = len(value_at(value_of(drawn.text), tuple(within)))
    return moved(drawn, (*within, number), (*within, min(number + 2, count)))


def moved(drawn: Drawn, source: Path, target: Path) -> Drawn:
    """The same with an item at another place."""
    item = item_text(drawn.text, source)
    level = len(source) - 1
    begun, number = source[level], target[level] if len(target) > level else None
    is_later = target[:level] == source[:level] and isinstance(number, int) and isinstance(begun, int)
    if is_later and number > begun:  # type: ignore[operator]
        target = (*target[:level], number - 1, *target[level + 1 :])  # type: ignore[operator]
    return Drawn(with_item(_taken_out(drawn.text, source), target, item), path_text(target))


def _taken_out(text: str, path: Path) -> str:
    text = without(text, path)
    *within, _ = path
    is_left = value_at(value_of(text), tuple(within))
    return text if is_left or within[-1] not in EMPTIED else without(text, tuple(within))


def _ids(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, dict):
        if "id" in value:
            yield (*path, "id")
        for key in ("then", "else", "steps", "choice"):
            yield from _ids(value.get(key), (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _ids(item, (*path, number))


ITEM_ACTIONS: dict[str, Callable[[Drawn, str], Drawn]] = {
    "at": _chosen,
    "remove": _removed,
    "copy": _copied,
    "up": _raised,
    "down": _lowered,
}
"""What a button does with an item, or with all of it where the path is empty."""
