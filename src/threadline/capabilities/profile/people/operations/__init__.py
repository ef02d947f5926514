"""What can be asked about people: one, many, tags, and joining and splitting them."""

from __future__ import annotations

from threadline.kernel.operation import Group

PEOPLE_GROUP = Group("people", "Find, tag, merge and split people.")
QUARANTINE_GROUP = Group("quarantine", "Merges of people that wait for a review.")
