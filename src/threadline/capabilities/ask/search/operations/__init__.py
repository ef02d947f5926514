"""What can be asked of the log as a whole: a search, a timeline, what is linked, and how far the index has come."""

from __future__ import annotations

from threadline.kernel.operation import Group

SEARCH_GROUP = Group("search", "Events and decisions, found by what is in them.")
