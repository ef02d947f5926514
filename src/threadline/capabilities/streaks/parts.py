"""The parts of a person's streaks: packed as long as nothing touches them."""

from __future__ import annotations

from typing import Any

import msgspec

State = dict[str, Any]
"""Parts by name: the head (see whereabouts.py), a record of 32 days (``d625``), the sets of a tally (``t0``), and what
others have told of streaks (see told.py)."""

_unpack = msgspec.msgpack.Decoder().decode


def part(state: State, name: str) -> Any:
    """A part of the state, which is unpacked from now on; None if there is none."""
    value = state.get(name)
    if value.__class__ is msgspec.Raw:
        value = state[name] = _unpack(value)
    return value
