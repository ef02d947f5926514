"""A store with one purchase, and the command line called in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

import threadline
from threadline.app import composition
from threadline.surfaces.cli.program import run
from threadline.surfaces.composition import Composition


@pytest.fixture(scope="module")
def composed() -> Composition:
    return composition()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one purchase; commands find it by the environment."""
    path = tmp_path / "x.db"
    with threadline.open(path) as tl:
        tl.track("42", "purchase_completed", {"total": 29.33, "currency": "EUR"}, key="order-1")
    monkeypatch.setenv("THREADLINE_STORE", str(path))
    return path


class Ran:
    """What a command answered."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def call(composed: Composition, capfd: pytest.CaptureFixture[str]) -> object:
    def call(*arguments: str) -> Ran:
        capfd.readouterr()
        code = run(lambda: composed, arguments)
        found = capfd.readouterr()
        return Ran(code, found.out, found.err)

    return call
