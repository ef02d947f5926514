"""Variables of templates: ``purchase.last_transaction.product_name`` is type, key and path in a fact's value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.capabilities.profile.memory.definition import TYPES
from threadline.capabilities.profile.memory.paths import follow


def resolve(memory: Mapping[str, Any], variable: str) -> Any:
    """The value that a variable stands for in a view of memory; None if there is none.

    A key may hold dots itself: the longest key that is known wins, and what follows it is the path in the value, by
    names and positions from 0. A type and a key alone are the whole value.
    """
    type, _, rest = variable.partition(".")
    of_type = memory.get(type) if type in TYPES else None
    if not of_type or not rest:
        return None
    steps = rest.split(".")
    for size in range(len(steps), 0, -1):
        fact = of_type.get(".".join(steps[:size]))
        if fact is not None:
            value = fact["value"]
            for step in steps[size:]:
                value = follow(value, step)
            return value
    return None
