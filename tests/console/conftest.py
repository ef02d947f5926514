"""One browser for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chromium import launched


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window, started once."""
    with launched("--disable-gpu", "--disable-dev-shm-usage") as made:
        yield made
