"""Few examples: Hypothesis tries a test no more often than the profile says, also where the test has its own number."""

from __future__ import annotations

import pytest
from hypothesis import settings

SETTINGS_OF_TEST = "_hypothesis_internal_use_settings"
"""Where Hypothesis keeps what ``@settings`` chose. If it moves, the run takes longer and is as good."""


def try_few(item: pytest.Item, most: int | None = None) -> None:
    """Lower a test's number of examples to that of the profile, and to ``most`` where that is less."""
    test = getattr(item, "obj", None)
    test = getattr(test, "__func__", test)
    chosen = getattr(test, SETTINGS_OF_TEST, None)
    examples = settings.default.max_examples if most is None else min(most, settings.default.max_examples)
    if chosen is None and most is not None:
        chosen = settings.default
    if chosen is not None and chosen.max_examples > examples:
        setattr(test, SETTINGS_OF_TEST, settings(chosen, max_examples=examples))
