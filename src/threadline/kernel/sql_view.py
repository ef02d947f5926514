"""A view in SQL that a capability declares: what is asked of events often enough to have a name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SqlView:
    """Declared like an operation, and found by discovery. `threadline sql` shows it beside the tables that ship."""

    name: str
    about: str
    """What its rows are; ends with a full stop."""
    query: str
    """One SELECT of DuckDB, over the view ``events`` and the other tables that `threadline sql` has. It names its
    columns, and believes only events whose speaker may say them (`threadline.kernel.event_type.SPEAKER_SQL`)."""
