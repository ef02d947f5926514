"""Copies of what the store has, in the formats of other engines; each has its own cursor in the log."""
