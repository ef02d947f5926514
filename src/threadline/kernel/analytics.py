"""The port of analytics: questions in SQL about everybody's events, answered as of the end of the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, NamedTuple, Protocol

from threadline.kernel.errors import InvalidValue

_PARAMETER = re.compile(r"\$([a-z_][a-z0-9_]*)")
IN_ORDER = "occurred_at, position"
"""What orders events in SQL, everywhere: those of one instant go in the order in which they were recorded. Two orders
would show a session that ends with an event after which its path goes on."""


class Table(NamedTuple):
    """The result of a question."""

    columns: list[str]
    rows: list[tuple[Any, ...]]
    """Values as Python has them: `datetime` with a time zone, `date`, `int`, `float`, `str`, `bool`, lists, None."""
    position: int
    """Entries of the log that the answer is of, the first ones."""
    lacking: int = 0
    """Entries that were recorded before the question and are not in the answer."""


class Sql(str):
    """A part of a query among its parameters: written out as it is, while any other text becomes a literal."""

    __slots__ = ()


class AnalyticsPort(Protocol):
    """Answers SQL over the events of a workspace."""

    def query(self, workspace: str, sql: str, params: Mapping[str, Any]) -> Table:
        """The answer to one SELECT in DuckDB's SQL, of everything that was recorded before the call; beside a large
        import, of what a worker has brought into the columns by then and the entries next to it.

        Tables: ``events``, whose column ``person`` is whose the event is now, ``identities`` and those of
        ``threadline sql``. ``params`` are the values of ``$name``; what runs is `filled`. Raises `InvalidValue` for SQL
        that cannot be run, `InvalidSetting` without DuckDB, `Unavailable` where nothing can be asked.
        """
        ...

    def close(self) -> None:
        """Release files and connections."""
        ...


def filled(sql: str, params: Mapping[str, Any]) -> str:
    """The SQL with its parameters written out: what runs, and what is shown beside the answer.

    It is one pass: a value may contain ``$name`` itself. A ``$name`` that is no parameter stays. Raises `InvalidValue`
    for a text that no SQL can contain.
    """
    return _PARAMETER.sub(lambda match: literal(params[match[1]]) if match[1] in params else match[0], sql)


def literal(value: Any) -> str:
    """A value as DuckDB's SQL writes it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case Sql():
            return str(value)
        case str():
            if "\0" in value:
                raise InvalidValue("a text in a question cannot contain the character U+0000")
            escaped = value.replace("'", "''")
            return f"'{escaped}'"
        case datetime():
            return f"TIMESTAMPTZ '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case list() | tuple():
            return f"[{', '.join(map(literal, value))}]"
    raise TypeError(f"{type(value).__name__} has no form in SQL")


def listed(values: Iterable[str]) -> Sql:
    """Texts as what stands behind IN, sorted: the SQL that is shown is the same every time."""
    return Sql(f"({', '.join(map(literal, sorted(values)))})")
