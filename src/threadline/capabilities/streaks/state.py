"""How the state of streaks is laid out."""

from __future__ import annotations

from typing import Any

State = dict[str, Any]
"""Parts by name: the head (see whereabouts.py), a record of 32 days (``d625``), the sets of a tally (``t0``), and what
others have told of streaks (see told.py)."""
