"""The worked table of docs/worked/leaderboards.md."""

from __future__ import annotations

import re
from pathlib import Path

from tests.capabilities.points_stage import Stage
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.leaderboards import read_boards
from threadline.kernel.time import parse_time

PAGE = (Path(__file__).parents[2] / "docs/leaderboards.md").read_text(encoding="utf-8")
WORKED = (Path(__file__).parents[2] / "docs/worked/leaderboards.md").read_text(encoding="utf-8")
PEOPLE = {"ada": "IT", "bob": "FR", "cleo": "IT"}


def tables(title: str) -> list[list[list[str]]]:
    """The tables under a heading, each without its head."""
    section = WORKED.split(f"\n## {title}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE)
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in b.splitlines()][2:] for b in blocks]


def definitions() -> str:
    """The declaration that the page shows first."""
    return re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0]


def test_a_week() -> None:
    told, asked = tables("A week")
    assert (len(told), len(asked)) == (6, 10)
    stage = Stage(definitions(), "streaks", "leaderboards")
    stage.now = parse_time(told[0][0])
    for who, country in PEOPLE.items():
        stage.tell("identify", who, properties={"country": country})
    for at, who, type in told:
        stage.now = parse_time(at)
        stage.tell(type, who)
    stage.now = parse_time("2026-03-04T12:00:00Z")
    for words, *cells in asked:
        period, *more = words.split(", ")
        params = {"period": period}
        for word in more:
            params["at" if word.startswith("at ") else "scope"] = word.removeprefix("at ")
        for who, cell in zip(PEOPLE, cells, strict=True):
            found = stage.ask("leaderboards_standing", id=f"user_id:{who}", name="points", **params)
            shown = "–" if found["rank"] is None else f"{found['rank']}: {found['score']}"
            assert shown == cell, f"{words}, {who}"


def test_the_example_takes_as_many_rows_as_the_page_says() -> None:
    boards = read_boards(Definitions([("docs/leaderboards.md", definitions())]))
    rows = sum(board.rows_max for board in boards.boards)
    assert f"The example takes {rows}." in PAGE
