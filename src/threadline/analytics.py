"""Answers of analytics for notebooks: as a pandas `DataFrame`, and their pictures as Altair charts.

Funnels, retention, cohorts, attribution, RFM, lifetimes and experiments are methods of `shop.analytics`, of an open
store or of a `Client`. Each answer is a struct with ``rows``; its ``sql`` is the query that made it.

    >>> import threadline
    >>> from threadline import analytics
    >>> with threadline.open("memory:") as shop:
    ...     receipts = [shop.track("ada", type) for type in ("viewed", "bought")]
    ...     funnel = shop.analytics.funnel(steps=["viewed", "bought"])
    >>> list(analytics.to_df(funnel)["people"])
    [1, 1]
    >>> analytics.to_chart(funnel).to_dict()["title"]["text"]
    'Funnel'

`to_df` takes ``name`` for another list of the answer, such as ``people`` of RFM; `picture` answers a plain value, for
other libraries. Pandas and Altair come with the extra ``notebook``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from threadline.app import operations
from threadline.kernel.chart import Chart
from threadline.kernel.errors import InvalidValue
from threadline.kernel.extra import library
from threadline.surfaces.charts.vega import vega

ABOUT = ("sql", "position", "bound", "notes")
"""What an answer says about itself, in the ``attrs`` of its table."""
_TIMES = ("date", "date-time")


def to_df(answer: Any, name: str = "rows") -> Any:
    """The rows of an answer as a DataFrame; ``name`` is another list in it, such as ``people`` of `Rfm`.

    Dates are datetimes, what is not known is NaN or None; ``attrs`` has the SQL and the error bound. Raises
    `InvalidValue` for something that is no answer, or has no such list.
    """
    pandas = _library("pandas")
    columns = _columns(answer, name)
    rows = [msgspec.to_builtins(row) for row in getattr(answer, name)]
    table = pandas.DataFrame(rows, columns=list(columns))
    for column, format in columns.items():
        if format in _TIMES:
            table[column] = pandas.to_datetime(table[column])
    table.attrs = {field: getattr(answer, field) for field in ABOUT if hasattr(answer, field)}
    return table


def to_chart(answer: Any) -> Any:
    """The picture of an answer, or a picture itself, as an Altair chart. Raises `InvalidValue` where there is none."""
    chart = answer if isinstance(answer, Chart) else picture(answer)
    return _library("altair").Chart.from_dict(vega(chart))


def picture(answer: Any) -> Chart:
    """The picture of an answer as a value: series, units and words. Raises `InvalidValue` where there is none."""
    made = _pictures().get(type(answer))
    if made is None:
        raise InvalidValue(f"{type(answer).__name__} has no picture; hand over what an analysis answered")
    return made(answer)


@cache
def _pictures() -> dict[Any, Callable[[Any], Chart]]:
    """The pictures by type of the answer; definitions, which may have mistakes, change none."""
    return {operation.result: operation.picture for operation in operations() if operation.picture is not None}


def _columns(answer: Any, name: str) -> dict[str, str]:
    """Column -> the format that its text has, or nothing."""
    described = inspect.type_info(type(answer)) if isinstance(answer, msgspec.Struct) else None
    fields = described.fields if isinstance(described, inspect.StructType) else ()
    for rows in (_plain(field.type) for field in fields if field.name == name):
        if isinstance(rows, inspect.ListType) and isinstance(rows.item_type, inspect.StructType):
            return {field.encode_name: _format(field.type) for field in rows.item_type.fields}
    raise InvalidValue(f"{type(answer).__name__} has no rows {name!r}")


def _plain(kind: Any) -> Any:
    return kind.type if isinstance(kind, inspect.Metadata) else kind


def _format(kind: Any) -> str:
    return str((kind.extra_json_schema or {}).get("format", "")) if isinstance(kind, inspect.Metadata) else ""


def _library(name: str) -> Any:
    return library(name, "tables and charts for notebooks need", "notebook")
