"""Why an event happened: because of something new, or because of what was so before and is only noticed now."""

from __future__ import annotations

from typing import Literal, get_args

Why = Literal["live", "time", "history", "definitions", "refresh", "merge"]

LIVE: Why = "live"
"""Something was recorded as it happened, or because it did; a join by identifiers in one live event, too."""
TIME: Why = "time"
"""An instant came: a timer fired. After an import as well, if the instant is later than the import."""
HISTORY: Why = "history"
"""Back-filled history was recorded: it says what was so before."""
DEFINITIONS: Why = "definitions"
"""Definitions were changed: what they say of somebody was so before, and nobody had asked."""
REFRESH: Why = "refresh"
"""Everybody was looked at again by the same definitions."""
MERGE: Why = "merge"
"""An operator joined people, or split them."""

REASONS: frozenset[str] = frozenset(get_args(Why))
NEWS: frozenset[Why] = frozenset({LIVE, TIME})
"""What happens now. Nothing is sent for any other reason, unless a definition says `existing: true`."""
