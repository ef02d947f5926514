"""Prints answers: as JSON, or for people, what is single as lines and what is many as tables.

Key fields come first, see `kernel.key_fields`; what else there is yields where there is no room, and `--all` shows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click
import msgspec
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from threadline.kernel.key_fields import key_columns, summary_fields_of

CELL_LENGTH_MAX = 60
CELL_LENGTH_MIN = 12
"""A column that would get less room than this is not shown; the answer as JSON has it."""
INDENT = 2
GAP = 2

_EMPTY: tuple[Any, ...] = (None, "", [], {}, ())
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.\d{6}Z")
_ID = re.compile(r"[0-9a-f]{32}")
_FIRST = (
    "", "name", "setting", "kind", "id", "occurred_at", "type", "value", "now", "status", "identifiers", "properties",
    "unit", "currency", "address", "summary", "code", "message", "received_at", "reason",
)  # fmt: skip
"""Columns that say most, in this order, of what declares none; where a table is too wide, it is others that go."""
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


class Layout(NamedTuple):
    """How an answer is printed for people."""

    first: tuple[str, ...] = ()
    """The fields that sum the whole up, of which alone it is shown; empty: of everything."""
    columns: Mapping[str, tuple[str, ...]] = {}
    """By the field that lists entries, the key fields of these."""
    everything: bool = False
    """Whether all of each entry is shown, as lines where a table has no room."""
    rest: str = "--json"
    """The option that shows what is left out."""


def layout_of(result: Any, *, everything: bool) -> Layout:
    """The layout of results of a type."""
    return Layout(() if everything else summary_fields_of(result), key_columns(result), everything, "--all")


def answer(value: Any, console: Console, *, as_json: bool, layout: Layout = Layout()) -> None:  # noqa: B008 - a constant
    """Print an answer: as JSON, or in tables for people."""
    if as_json:
        click.echo(json_of(value))
    else:
        show(msgspec.to_builtins(value), console, layout)


def json_of(value: Any) -> bytes:
    """A value as JSON, in which the control characters are escaped that JSON would let stand as they are."""
    return _BARE_IN_JSON.sub(lambda match: b"\\u%04x" % ord(match.group().decode()), msgspec.json.encode(value))


def show(value: Any, console: Console, layout: Layout = Layout()) -> None:  # noqa: B008 - a constant
    """Print an answer made of plain values."""
    if isinstance(value, Mapping) and not layout.everything and not layout.columns.keys().isdisjoint(value):
        # Of a list, what says nothing is left out, but never that there is nobody and nothing in it.
        value = {name: item for name, item in value.items() if item not in _EMPTY or name in layout.columns}
    if layout.first and isinstance(value, Mapping):
        rest = [name for name, item in value.items() if name not in layout.first and item not in _EMPTY]
        value = {name: value[name] for name in layout.first if name in value}
        console.print(Group(_shown(value, console.width, layout), *_left_out(rest, layout)))
    else:
        console.print(_shown(value, console.width, layout))


def _left_out(names: Sequence[str], layout: Layout) -> list[RenderableType]:
    return [Text(visible(f"with {layout.rest} also: {', '.join(names)}"), style="dim")] if names else []


def _shown(value: Any, width: int, layout: Layout, name: str = "") -> RenderableType:
    if isinstance(value, Mapping):
        return _mapping(value, width, layout)
    if isinstance(value, list | tuple):
        if value and all(isinstance(item, Mapping) for item in value):
            return _table(value, width, layout, layout.columns.get(name, ()))
        return _text(value) if value else Text("none", style="dim")
    return _text(value)


def _mapping(value: Mapping[str, Any], width: int, layout: Layout) -> RenderableType:
    if _alike(value):
        return _table([{"": name, **item} for name, item in value.items()], width, layout)
    single = {name: item for name, item in value.items() if not _nested(item)}
    parts: list[RenderableType] = [_lines(single)] if single else []
    for name, item in value.items():
        if _nested(item):
            shown = _shown(item, width - INDENT, layout, name)
            parts += [Text(visible(name), style="bold"), Padding(shown, (0, 0, 0, INDENT))]
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
        grid.add_row(Text(visible(name)), _line(value))
    return grid


def _line(value: Any) -> Text:
    if isinstance(value, list | tuple) and not value:
        return Text("none", style="dim")
    return _block(value) if isinstance(value, str) and "\n" in value else _text(value)


def _block(text: str) -> Text:
    """A text of several lines. All stand beside its name, so that none looks like another field."""
    return Text(visible_lines(text.replace("\r\n", "\n").rstrip("\n")))


def _table(
    entries: Sequence[Mapping[str, Any]], width: int, layout: Layout, first: Sequence[str] = ()
) -> RenderableType:
    names = list(_columns(entries, first))
    short = _short(entries, first)
    cells = {
        name: [
            _cell(name, str(entry.get(name) or "")[:ID_LENGTH] if name in short else entry.get(name))
            for entry in entries
        ]
        for name in names
    }
    wanted = {name: max(len(name), *map(len, cells[name])) for name in names}
    keys = [name for name in names if name in first]
    whole = {name for name in keys if all(_is_whole(entry.get(name)) for entry in entries)}
    widths = _widths(wanted, width, keys, whole)
    hidden = [name for name in names if name not in widths]
    if hidden and layout.everything:
        return _blocks(entries, names, width, layout)
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
    return Group(table, *_left_out(hidden, layout))


def _blocks(entries: Sequence[Mapping[str, Any]], names: Sequence[str], width: int, layout: Layout) -> RenderableType:
    """Each entry by itself with all that it has, its columns in their order."""
    blocks: list[RenderableType] = []
    for entry in entries:
        ordered = {name: entry[name] for name in names if entry.get(name) not in _EMPTY}
        blocks += [*([Text("")] if blocks else []), _mapping(ordered, width, layout)]
    return Group(*blocks)


def _is_whole(value: Any) -> bool:
    """Whether a value says nothing, or something else, when it is cut: a number, a time, an id."""
    return not isinstance(value, str | list | tuple | Mapping) or (
        isinstance(value, str) and (_TIME.fullmatch(value) is not None or _ID.fullmatch(value) is not None)
    )


def _widths(wanted: Mapping[str, int], width: int, keys: Sequence[str], whole: Collection[str]) -> dict[str, int]:
    """The columns for which there is room, in order: all keys, of which the longest yields first, and of the others
    those that fit. One that needs more than is left is the one that is cut."""
    widths = {name: _enough(name, wanted[name], width) for name in keys}
    while widths and sum(widths.values()) + GAP * (len(widths) - 1) > width:
        room = {name: (name not in whole, wide - len(name)) for name, wide in widths.items() if wide > len(name)}
        if not room:
            break
        widths[max(room, key=room.__getitem__)] -= 1
    left = width - sum(widths.values()) - GAP * len(widths)
    for name, full in wanted.items():
        wide = _enough(name, full, width)
        if name not in widths and (not widths or wide <= left or left >= max(len(name), CELL_LENGTH_MIN)):
            widths[name] = min(wide, left)
            left -= wide + GAP
    return widths


def _enough(name: str, wide: int, width: int) -> int:
    """What a column needs to be read, of what it would take."""
    if name in _FOLDED and name not in _SENTENCES:
        return min(wide, max(CELL_LENGTH_MIN, width // 5))
    if name == IDENTIFIERS:  # the first of somebody's is enough to know them
        return min(wide, max(CELL_LENGTH_MIN, width // 3))
    return wide


def _columns(entries: Sequence[Mapping[str, Any]], first: Sequence[str]) -> Iterator[str]:
    """The names of the columns, those that say most first. What is empty in every entry tells nothing."""
    names = dict.fromkeys(name for entry in entries for name in entry)
    filled = [name for name in names if any(entry.get(name) not in _EMPTY for entry in entries)]
    short = _short(entries, first)
    known = (*first, *_FIRST)

    def rank(name: str) -> int:
        if name in short:
            return len(known) + 1
        return known.index(name) if name in known else len(known)

    return iter(sorted(filled, key=rank))


def _short(entries: Sequence[Mapping[str, Any]], first: Sequence[str]) -> frozenset[str]:
    """The columns with ids of people who are named by something better in each entry."""
    if not all(entry.get(IDENTIFIERS) for entry in entries):
        return frozenset()
    # Where an entry says no `person` it is one itself, and has an id of its own; else the id is that of an event.
    own = "id" in first or any(name in entry for entry in entries for name in (*PERSON, "type"))
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
