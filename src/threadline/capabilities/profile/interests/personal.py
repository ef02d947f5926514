"""What is derived about what interests a person, and where they came from."""

from __future__ import annotations

from threadline.kernel.personal import PersonFile, shown_views

INTERESTS_FILE = PersonFile(
    "interests",
    "What seems to interest you",
    "Topics that your actions point to, with their weight.",
    shown_views("interests"),
    ("interests",),
)
ATTRIBUTION_FILE = PersonFile(
    "attribution",
    "How you found the way here",
    "The campaigns and pages from which you came first and last.",
    shown_views("attribution"),
    ("attribution",),
)
