"""The history that the demo tells: orders of an online music shop, as a Segment client sends them."""

from __future__ import annotations

from datetime import date
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, NamedTuple

FILE = "CDNOW_sample.txt"
"""Where it comes from stands in ORIGIN.md beside it."""
CURRENCY = "USD"
AFTERWARDS = date(1998, 7, 1)
"""The first day after the history."""


def definitions() -> str:
    """What the demo declares besides the features that ship."""
    names = ("threadline.yaml", "mail.yaml") if has_mail() else ("threadline.yaml",)
    return "".join(files(__package__).joinpath(name).read_text(encoding="utf-8") for name in names)


def has_mail() -> bool:
    """Whether the extra `mail` is installed: the demo does without it."""
    return all(find_spec(part) is not None for part in ("minijinja", "mrml", "css_inline"))


class Order(NamedTuple):
    """One line of the file."""

    number: int
    """The line, from 1: it names the order, since some customers gave two equal ones on one day."""
    customer: str
    day: date
    cds: int
    dollars: float


def orders() -> list[Order]:
    """All orders, as they happened: by day, within a day in the order of the file."""
    text = files(__package__).joinpath(FILE).read_text(encoding="ascii")
    parsed = [_order(number, line) for number, line in enumerate(text.splitlines(), 1)]
    return sorted(parsed, key=lambda order: (order.day, order.number))


def _order(number: int, line: str) -> Order:
    # The first column is the customer's id in the full data; the second, which runs from 1 to 2357, is the sample's.
    _, customer, day, cds, dollars = line.split()
    return Order(number, customer, date.fromisoformat(day), int(cds), float(dollars))


def message(order: Order) -> dict[str, Any]:
    """The order as a message of Segment's API. The same order makes the same message, so sending again is harmless."""
    return {
        "type": "track",
        "event": "Order Completed",
        "userId": f"cdnow-{order.customer}",
        "messageId": f"cdnow-order-{order.number}",
        # The file knows days only: midnight stands for the whole day.
        "timestamp": f"{order.day.isoformat()}T00:00:00Z",
        "historical": True,
        "properties": {"total": order.dollars, "currency": CURRENCY, "cds": order.cds},
    }
