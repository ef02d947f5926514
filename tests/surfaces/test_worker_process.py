"""A process that works: what it logs while the store is away, and in which form."""

from __future__ import annotations

import json
import logging
import sys
import threading
from typing import Any, cast

import pytest

from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.kernel.errors import StoreFull, Unavailable
from threadline.surfaces import worker_process
from threadline.surfaces.log_lines import JsonLines
from threadline.surfaces.worker_process import keep_working


class Failing:
    """A dispatcher that fails in these ways, one after the other, and then is told to stop."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)

    def run(self, stopping: threading.Event, *, idle_seconds: float) -> None:
        if self.errors:
            raise self.errors.pop(0)
        stopping.set()


def logged(caplog: pytest.LogCaptureFixture, *errors: Exception) -> list[dict[str, Any]]:
    """The lines that a process writes whose dispatcher fails so."""
    failing = Failing(*errors)
    keep_working(cast(Dispatcher, failing), threading.Event())
    assert failing.errors == []
    return [json.loads(JsonLines().format(record)) for record in caplog.records]


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "FAILED_SECONDS", 0.0)


def test_a_store_that_is_away_is_told_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    lines = logged(caplog, Unavailable("the server is away"), StoreFull("no room"))
    assert [(line["level"], line["message"]) for line in lines] == [
        ("warning", "what is due waits for the store: the server is away"),
        ("warning", "what is due waits for the store: no room"),
    ]
    assert not any("traceback" in line for line in lines)


def test_a_fault_of_ours_is_told_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = logged(caplog, ZeroDivisionError("nothing to divide by"))
    assert (line["level"], line["logger"]) == ("error", "threadline.work")
    assert line["traceback"].endswith("ZeroDivisionError: nothing to divide by")


def test_a_record_is_one_line_whatever_it_says() -> None:
    try:
        raise ValueError("one\ntwo")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 1, "%s:\n%s", ("a", "b"), sys.exc_info())
    record.created = 1_767_225_600.25
    line = JsonLines().format(record)
    assert "\n" not in line
    told = json.loads(line)
    assert told.pop("traceback").endswith("ValueError: one\ntwo")
    assert told == {"at": "2026-01-01T00:00:00.250000Z", "level": "error", "logger": "x", "message": "a:\nb"}
