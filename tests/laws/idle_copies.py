"""A plugin of pytest: in each test that is named for a copy, what takes out of that copy what was erased raises.

``THREADLINE_TEST_IDLE`` has, as JSON, the end of a test's id -> the module and name of what is to be idle.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from functools import reduce
from importlib import import_module
from typing import Any

import pytest

IDLE: dict[str, list[str]] = json.loads(os.environ.get("THREADLINE_TEST_IDLE", "{}"))


def idle(*args: Any, **kwargs: Any) -> Any:
    raise AssertionError("this is idle")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    module, name = IDLE[item.nodeid.partition("[")[0]]
    found: Any = reduce(getattr, name.split("."), import_module(module))
    code = found.__code__
    found.__code__ = idle.__code__  # the same function, wherever it was imported to
    try:
        return (yield)
    finally:
        found.__code__ = code
