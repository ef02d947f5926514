"""Prints answers: as JSON, or for people, what is single as lines and what is many as tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import msgspec
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

CELL_LENGTH_MAX = 60
CELL_LENGTH_MIN = 12
"""A column that would get less room than this is not shown; the answer as JSON has it."""
INDENT = 2
GAP = 2

_EMPTY: tuple[Any, ...] = (None, "", [], {}, ())
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{6}Z")
_FIRST = (
    "", "name", "setting", "kind", "id", "occurred_at", "type", "value", "now", "status", "identifiers", "properties",
    "unit", "currency", "address", "summary", "code", "message", "received_at", "reason",
)  # fmt: skip
"""Columns that say most, in this order; where a table is too wide, it is others that go."""
IDENTIFIERS = "identifiers"
PERSON = ("person", "thread")
"""The ids of somebody. Where their identifiers stand in the same entry these say least: they come last, and cut."""
ID_LENGTH = 8
"""What is shown of them then; commands take the identifiers, and the answer as JSON has the whole."""
_SENTENCES = frozenset({"message", "reason"})
_FOLDED = _SENTENCES | {"now"}
"""Columns that are told whole, on several lines if need be."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_BARE_IN_JSON = re.compile(rb"\x7f|\xc2[\x80-\x9f]")
"""The same beyond ASCII's first 32, as UTF-8 has them."""


def visible(text: str) -> str:
    """Text with its control characters written out as ``\\xNN``: what producers send must not steer a terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def visible_lines(text: str) -> str:
    """The same for a text of several lines, which no producer has a part in: mistakes in definitions, one a line."""
    return "\n".join(map(visible, text.split("\n")))


def terminal(*, stderr: bool = False, soft_wrap: bool = False) -> Console:
    """Where answers, or messages, are printed: a name between colons stays what it is."""
    return Console(stderr=stderr, soft_wrap=soft_wrap, emoji=False)


def answer(value: Any, console: Console, *, as_json: bool) -> None:
    """Print an answer: as JSON, or in tables for people."""
    if as_json:
        click.echo(json_of(value))
    else:
        show(msgspec.to_builtins(value), console)


def json_of(value: Any) -> bytes:
    """A value as JSON, in which the control characters are escaped that JSON would let stand as they are."""
    return _BARE_IN_JSON.sub(lambda match: b"\\u%04x" % ord(match.group().decode()), msgspec.json.encode(value))


def show(value: Any, console: Console) -> None:
    """Print an answer made of plain values."""
    console.print(_shown(value, console.width))


def _shown(value: Any, width: int) -> RenderableType:
    if isinstance(value, Mapping):
        return _mapping(value, width)
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, Mapping) for item in value):
            return _table(value, width)
        return _text(value) if value else Text("none", style="dim")
    return _text(value)


def _mapping(value: Mapping[str, Any], width: int) -> RenderableType:
    if _alike(value):
        return _table([{"": name, **item} for name, item in value.items()], width)
    single = {name: item for name, item in value.items() if not _nested(item)}
    parts: list[RenderableType] = [_lines(single)] if single else []
    for name, item in value.items():
        if _nested(item):
            parts += [Text(visible(name), style="bold"), Padding(_shown(item, width - INDENT), (0, 0, 0, INDENT))]
    return Group(*parts) if parts else Text("nothing", style="dim")


def _alike(value: Mapping[str, Any]) -> bool:
    """Whether this is a table by name: several mappings that share most of their fields, such as features."""
    entries = [entry for entry in value.values() if isinstance(entry, Mapping)]
    if len(entries) < 2 or len(entries) != len(value):
        return False
    fields = [set(entry) for entry in entries]
    shared = set.intersection(*fields)
    return bool(shared) and 2 * len(shared) >= len(set.union(*fields))


def _nested(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value)
    return isinstance(value, list | tuple) and any(isinstance(item, Mapping) for item in value)


def _lines(values: Mapping[str, Any]) -> Table:
    grid = Table.grid(padding=(0, GAP))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in values.items():
        grid.add_row(Text(visible(name)), _block(value) if isinstance(value, str) and "\n" in value else _text(value))
    return grid


def _block(text: str) -> Text:
    """A text of several lines. All stand beside its name, so that none looks like another field."""
    return Text(visible_lines(text.replace("\r\n", "\n").rstrip("\n")))


def _table(entries: Sequence[Mapping[str, Any]], width: int) -> RenderableType:
    names = list(_columns(entries))
    short = _short(entries)
    cells = {
        name: [
            _cell(name, str(entry.get(name) or "")[:ID_LENGTH] if name in short else entry.get(name))
            for entry in entries
        ]
        for name in names
    }
    widths = _widths({name: max(len(name), *map(len, cells[name])) for name in names}, width)
    table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="dim")
    for name, wide in widths.items():
        number = all(isinstance(entry.get(name), int | float | None) for entry in entries)
        folded = name in _FOLDED
        table.add_column(
            Text(visible(name)),
            justify="right" if number else "left",
            width=wide,
            no_wrap=not folded,
            overflow="fold" if folded else "ellipsis",
        )
    for row in zip(*(cells[name] for name in widths), strict=True):
        table.add_row(*row)
    hidden = [name for name in names if name not in widths]
    return Group(table, Text(visible(f"with --json also: {', '.join(hidden)}"), style="dim")) if hidden else table


def _widths(wanted: Mapping[str, int], width: int) -> dict[str, int]:
    """The columns for which there is room, in order. One that needs more than is left is the one that is cut."""
    widths: dict[str, int] = {}
    left = width
    for name, wide in wanted.items():
        if name in _FOLDED and name not in _SENTENCES:
            wide = min(wide, max(CELL_LENGTH_MIN, width // 5))
        if name == IDENTIFIERS:  # the first of somebody's is enough to know them
            wide = min(wide, max(CELL_LENGTH_MIN, width // 3))
        if not widths or wide <= left or left >= max(len(name), CELL_LENGTH_MIN):
            widths[name] = min(wide, left)
            left -= wide + GAP
    return widths


def _columns(entries: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The names of the columns, those that say most first. What is empty in every entry tells nothing."""
    names = dict.fromkeys(name for entry in entries for name in entry)
    filled = [name for name in names if any(entry.get(name) not in _EMPTY for entry in entries)]
    short = _short(entries)

    def rank(name: str) -> int:
        return len(_FIRST) + 1 if name in short else _FIRST.index(name) if name in _FIRST else len(_FIRST)

    return iter(sorted(filled, key=rank))


def _short(entries: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """The columns with ids of people who are named by something better in each entry."""
    if not all(entry.get(IDENTIFIERS) for entry in entries):
        return frozenset()
    # Where an entry says no `person` it is one itself, and has an id of its own; else the id is that of an event.
    own = any(name in entry for entry in entries for name in (*PERSON, "type"))
    return frozenset(PERSON) if own else frozenset({*PERSON, "id"})


def _cell(name: str, value: Any, length: int | None = None) -> Text:
    text = _text(value[:length] if isinstance(value, str) else value)
    text.plain = _TIME.sub(r"\1 \2", text.plain)
    if name not in _FOLDED:
        text.truncate(CELL_LENGTH_MAX, overflow="ellipsis")
    return text


def _text(value: Any) -> Text:
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    if value in _EMPTY:
        return Text("–", style="dim")
    if isinstance(value, list | tuple) and all(isinstance(item, str | int | float) for item in value):
        return Text(visible(", ".join(map(str, value))))
    if isinstance(value, list | tuple) and all(
        isinstance(item, Mapping) and set(item) == {"kind", "value"} for item in value
    ):
        return Text(visible(", ".join(f"{item['kind']}:{item['value']}" for item in value)))
    if isinstance(value, list | tuple | Mapping):
        return Text(visible(json.dumps(value, ensure_ascii=False)))
    return Text(visible(str(value)))
