"""``python -m release.notebook``: writes the guide for data scientists as a notebook for Jupyter."""

from __future__ import annotations

import json
import re
from typing import Any

from release.parts import ROOT

GUIDE = ROOT / "docs/guides/data-scientists.md"
NOTEBOOK = ROOT / "docs/guides/notebooks/shop.ipynb"
_SNIPPET = re.compile(r"^```(?P<language>python|console)\n(?P<code>.*?)^```\n", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)$", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)", re.DOTALL)


def text(page: str) -> str:
    """The notebook of a page: its prose without links, its snippets as cells, its commands behind ``!``."""
    cells: list[dict[str, Any]] = []
    end = 0
    for match in _SNIPPET.finditer(page):
        cells += _prose(page[end : match.start()], len(cells))
        code = match["code"]
        if match["language"] == "console":
            code = "".join(f"!{command}\n" for command in _COMMAND.findall(code))
        cells.append({**_cell("code", code, len(cells)), "execution_count": None, "outputs": []})
        end = match.end()
    cells += _prose(page[end:], len(cells))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _prose(words: str, number: int) -> list[dict[str, Any]]:
    # The links lead to pages that are not beside a notebook that somebody has downloaded.
    plain = _LINK.sub(lambda link: "" if link[0].startswith("!") else link[1], words).strip()
    return [_cell("markdown", plain, number)] if plain else []


def _cell(kind: str, source: str, number: int) -> dict[str, Any]:
    return {
        "cell_type": kind,
        "id": f"cell-{number}",
        "metadata": {},
        "source": source.strip().splitlines(keepends=True),
    }


def main() -> None:
    """Write the notebook."""
    NOTEBOOK.parent.mkdir(exist_ok=True)
    NOTEBOOK.write_text(text(GUIDE.read_text()))


if __name__ == "__main__":
    main()
