"""How the state of `interests` is laid out, and how much of it is kept."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.profile.interests.definition import (
    APPLICATION_LENGTH_MAX,
    SCOPE_LENGTH_MAX,
    TOPIC_LENGTH_MAX,
    VALUE_LENGTH_MAX,
)

NAME = "interests"

BLOCK_DAYS = 28
BLOCKS_MAX = 16
"""Blocks of four weeks with actions that are kept for one person, the newest: more than a year."""
BLOCK_BYTES_MAX = 10_000
"""Roughly what the cells of one block may take; about seventy scopes with names of usual length."""
CELL_BYTES = 96
"""What a cell is estimated to take beside its name."""
NAME_BYTES_MAX = 4 * (TOPIC_LENGTH_MAX + APPLICATION_LENGTH_MAX + SCOPE_LENGTH_MAX + VALUE_LENGTH_MAX) + 3
SLOTS_MAX = 128
"""Days, or windows of less than a day, that are kept of one cell in one block, the newest."""
TOPICS_MAX = 64
"""Topics whose first day is remembered; periods of further ones start on multiples of their length since 1970."""

TOPICS = "topics"
"""The part of the state that says on which day each topic began; all other parts are blocks, by number."""
CUTOFF = ""
"""In a block that was once full: the smallest hash of a cell that had no room; none from there on is kept."""

State = dict[str, Any]
"""``{"topics": {topic: first day}, "730": {cell: [slot, count, slot, count …]}}``, slots ascending within the block."""
