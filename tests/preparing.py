"""Prepares effects one after the other: most tests have nothing to read for several at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import Answer, DueEffect


def one_by_one(
    prepare: Callable[[Ports, PersonView, PendingEffect], Answer],
) -> Callable[[Ports, Sequence[DueEffect]], Sequence[Answer]]:
    """For a `Preparation` that answers each effect by itself."""
    return lambda ports, due: [prepare(ports, *effect) for effect in due]
