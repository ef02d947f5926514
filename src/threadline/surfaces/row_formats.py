"""Answers that are lists, as CSV or Parquet: a row for each entry, a column for each of its fields."""

from __future__ import annotations

import csv
import io
import re
import types
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from threadline.kernel.errors import InvalidValue
from threadline.kernel.operation import COLUMNS
from threadline.wire.arrow import arrow

Format = Literal["json", "csv", "parquet"]
MEDIA_TYPES: dict[Format, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}

_WEIGHT = re.compile(r"[01](\.[0-9]{1,3})?")
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![0-9 ().,/-]*\Z)")
"""How a text begins that a spreadsheet would work out. Digits behind a sign, such as a phone number, run nothing."""
IDENTIFIERS = "identifiers"
KINDS = ("user_id", "email", "phone")
"""Kinds of identifiers that have a column each in every CSV of people; others have one where somebody has such one."""

Kind = Literal["text", "integer", "number", "flag", "texts", "spread", "other"]
_KINDS: dict[Any, Kind] = {str: "text", int: "integer", float: "number", bool: "flag"}


class Column(NamedTuple):
    """A field of the entries."""

    name: str
    field: str
    kind: Kind
    """``spread``: an object of which each member is a column of its own. ``other`` is written as JSON."""


class Rows(NamedTuple):
    """Where a result has its entries, and what they are made of."""

    field: str
    columns: tuple[Column, ...]


class Rendered(NamedTuple):
    """An answer as bytes, and the cursor of the page after it where the bytes do not say it."""

    body: bytes
    next: str = ""


@lru_cache(maxsize=1_000)
def rows_of(result: Any) -> Rows | None:
    """The rows of a type of results; None if it has no list of objects, or several that are always there."""
    if not (isinstance(result, type) and issubclass(result, msgspec.Struct)):
        return None
    hints = get_type_hints(result, include_extras=True)
    lists = [(name, entry) for name, hint in hints.items() if (entry := _entry(hint)) is not None]
    if len(lists) > 1:
        required = {field.name for field in msgspec.structs.fields(result) if field.required}
        lists = [pair for pair in lists if pair[0] in required]
    if len(lists) != 1:
        return None
    ((field, entry),) = lists
    hints = get_type_hints(entry, include_extras=True)
    names = {field.name: field.encode_name for field in msgspec.structs.fields(entry)}
    return Rows(field, tuple(Column(names[name], name, _kind(hints[name])) for name in names))


def rendered(result: Any, form: Format, without: Collection[str] = (), *, is_flat: bool = False) -> Rendered:
    """The rows of a result as CSV or Parquet, ``without`` some columns of a CSV. ``is_flat``: several texts stand in a
    cell as people write them, with commas, not as JSON. Raises `InvalidValue` if it has none, or if Parquet cannot be
    written here."""
    kind: Any = type(result)
    rows = rows_of(kind)
    if rows is None:
        raise InvalidValue(f"this answer is not a list, which {form} needs; leave the format out for JSON")
    entries = getattr(result, rows.field)
    table = dict(_filled(rows, entries))
    if form == "csv":
        table = _with_kinds(table)
    table = {name: column for name, column in table.items() if name not in without}
    body = _csv(_flat(table) if is_flat else table, len(entries)) if form == "csv" else _parquet(table)
    return Rendered(body, str(getattr(result, "next", "") or ""))


def accepted(accept: str) -> Format:
    """The form that an ``Accept`` header prefers; JSON if it names none of ours."""
    named: list[tuple[float, Format]] = []
    for choice in accept.split(","):
        media_type, *options = (part.strip().lower() for part in choice.split(";"))
        weights = [option.removeprefix("q=") for option in options if option.startswith("q=")]
        weight = float(weights[0]) if weights and _WEIGHT.fullmatch(weights[0]) else 1.0
        named += [(weight, form) for form, known in MEDIA_TYPES.items() if media_type == known.partition(";")[0]]
    # The first of equal ones: `max` keeps it.
    return max(named, key=lambda pair: pair[0])[1] if any(weight for weight, _ in named) else "json"


def _unwrapped(hint: Any) -> tuple[Any, bool]:
    """A type without annotations and without None, and whether an annotation spreads its members over columns."""
    spread = False
    while True:
        if get_origin(hint) is Annotated:
            spread = spread or any(getattr(meta, "extra", None) == COLUMNS.extra for meta in hint.__metadata__)
            hint = hint.__origin__
        elif get_origin(hint) in (Union, types.UnionType):
            kinds = [arg for arg in get_args(hint) if arg is not type(None)]
            if len(kinds) > 1:
                return (float if set(kinds) <= {int, float} else Any), spread
            hint = kinds[0]
        else:
            return hint, spread


def _entry(hint: Any) -> type | None:
    hint, _ = _unwrapped(hint)
    if get_origin(hint) is not list:
        return None
    entry, _ = _unwrapped(get_args(hint)[0])
    return entry if isinstance(entry, type) and issubclass(entry, msgspec.Struct) else None


def _kind(hint: Any) -> Kind:
    hint, spread = _unwrapped(hint)
    if spread:
        return "spread"
    if get_origin(hint) is Literal:
        return "text"
    if get_origin(hint) is list:
        return "texts" if _unwrapped(get_args(hint)[0])[0] is str else "other"
    return _KINDS.get(hint, "other")


def _filled(rows: Rows, entries: Sequence[Any]) -> Iterator[tuple[str, tuple[Kind, list[Any]]]]:
    """By name, the kind of each column and its values."""
    for name, field, kind in rows.columns:
        values = [msgspec.to_builtins(getattr(entry, field)) for entry in entries]
        if kind == "spread":
            for member in dict.fromkeys(member for value in values for member in value):
                yield f"{name}.{member}", ("other", [value.get(member) for value in values])
        else:
            yield name, (kind, values)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else msgspec.json.encode(value).decode()


def _harmless(value: Any) -> str:
    """The text of a cell. A formula that somebody gave as their name would run where the file is opened."""
    text = _text(value)
    return f"'{text}" if isinstance(value, str) and _FORMULA.match(text) else text


def _with_kinds(table: dict[str, tuple[Kind, list[Any]]]) -> dict[str, tuple[Kind, list[Any]]]:
    """The table with a column for each kind of identifiers, of which each cell has the first."""
    _, lists = table.get(IDENTIFIERS, ("texts", []))
    if not all(isinstance(text, str) for people in lists for text in people or ()):
        return table
    named = [dict(text.split(":", 1) for text in reversed(people or ())) for people in lists]
    kinds = dict.fromkeys((*KINDS, *sorted({kind for person in named for kind in person})))
    columns: dict[str, tuple[Kind, list[Any]]] = {
        kind: ("text", [person.get(kind, "") for person in named]) for kind in kinds if kind not in table
    }
    return table | columns if IDENTIFIERS in table else table


def _flat(table: dict[str, tuple[Kind, list[Any]]]) -> dict[str, tuple[Kind, list[Any]]]:
    return {
        name: ("text", [", ".join(texts or ()) for texts in values]) if kind == "texts" else (kind, values)
        for name, (kind, values) in table.items()
    }


def _csv(table: dict[str, tuple[Kind, list[Any]]], count: int) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow(table)
    columns = [values for _, values in table.values()]
    writer.writerows([_harmless(values[row]) for values in columns] for row in range(count))
    # Half a surrogate pair is no UTF-8; JSON writes it as an escape, and so does this.
    return out.getvalue().encode("utf-8", "backslashreplace")


def _parquet(table: dict[str, tuple[Kind, list[Any]]]) -> bytes:
    pa = arrow("writing")
    types_of = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "flag": pa.bool_(),
        "texts": pa.list_(pa.string()),
    }

    def column(kind: Kind, values: list[Any]) -> Any:
        if kind != "other":
            return pa.array(values, types_of[kind])
        if all(type(value) in (int, float, type(None)) for value in values):
            return pa.array(values, pa.float64())
        if all(type(value) in (bool, type(None)) for value in values):
            return pa.array(values, pa.bool_())
        return pa.array([None if value is None else _text(value) for value in values], pa.string())

    out = io.BytesIO()
    try:
        pa.parquet.write_table(pa.table({name: column(*pair) for name, pair in table.items()}), out)
    except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
        raise InvalidValue(f"this list cannot be written as Parquet: {error}; take csv or json") from None
    return out.getvalue()
