"""The notebook for data scientists is the guide, cell by cell, and runs from its first cell to its last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from release.notebook import GUIDE, NOTEBOOK, text
from tests.docs.markdown import Snippet
from tests.docs.session import Session

CELLS = json.loads(NOTEBOOK.read_text())["cells"]


def test_notebook_has_the_cells_of_the_guide() -> None:
    assert NOTEBOOK.read_text() == text(GUIDE.read_text()), "run `.venv/bin/python -m release.notebook`"


def test_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = Session("docs/guides/notebooks/shop.ipynb", tmp_path)
    sources = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
    assert len(sources) > 8
    for number, source in enumerate(sources, 1):
        if source.startswith("!"):
            commands = source.replace("!", "$ ", 1).replace("\n!", "\n$ ")
            session.run(Snippet("console", f"{commands}\n", number, not_run=""))
        else:
            session.run(Snippet("python", f"{source}\n", number, not_run=""))
    assert (tmp_path / "again.svg").exists()
    session.close()
