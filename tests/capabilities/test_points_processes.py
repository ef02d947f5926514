"""Points and boards where several processes work on one database: no overdraft, and no rank older than is promised."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import threadline
from tests import forked
from tests.servers.postgres import schema_of, server
from threadline.kernel.time import SECOND, system_clock

DEFINITIONS = "leaderboards: {points: {score: points.earned, periods: [day, all]}}"

# Speaks as little as it can: what each line of its answer stands for is said where it is read.
WORKER = """
import sys, threadline
store, definitions, work, *more = sys.argv[1:]
app = threadline.open(store, definitions=definitions)
if work == "earn":
    for who in more:
        app.track(who, "result_shared")
else:
    for turn in range(25):
        for _ in range(2):  # each is asked twice, as after a time-out
            print(app.points.spend(id="user_id:ada", points=37, request=f"{more[0]}/{turn}").status)
app.close()
"""


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgres":
        yield server("18").made(schema_of(tmp_path))
    else:
        yield str(tmp_path / "thread.db")


@pytest.fixture
def definitions(tmp_path: Path) -> Path:
    file = tmp_path / "boards.yaml"
    file.write_text(DEFINITIONS)
    return file


def begin(store: str, definitions: Path, *work: str) -> subprocess.Popen[str]:
    command = [forked.python(), "-c", WORKER, store, str(definitions), *work]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def done(process: subprocess.Popen[str]) -> list[str]:
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return told.split()


@pytest.mark.slow
def test_what_another_process_earned_is_ranked_within_the_time_that_is_promised(store: str, definitions: Path) -> None:
    done(begin(store, definitions, "earn", "ada", "ada", "bob"))
    ahead = 0
    reader = threadline.open(store, definitions=definitions, readonly=True, clock=lambda: system_clock() + ahead)

    def bob() -> tuple[int | None, int | None, list[str]]:
        mine = reader.leaderboards.standing("user_id:bob", "points")
        first = reader.leaderboards.top("points").places
        return mine.rank, mine.total, [each.identifiers[0] for each in first]

    assert bob() == (2, 2, ["user_id:ada", "user_id:bob"])
    done(begin(store, definitions, "earn", "eve", "eve", "eve", "bob", "bob"))
    began = reader.leaderboards.standing("user_id:bob", "points")
    # The own score and the first places are those of this moment; how many have more is as old as it says.
    assert (began.score, began.rank, began.total) == (45, 1, 2)
    assert bob()[2][2:] == ["user_id:ada"]
    ahead = 61 * SECOND
    assert bob()[:2] == (1, 3)
    assert reader.leaderboards.standing("user_id:bob", "points").as_of > began.as_of
    reader.close()


@pytest.mark.slow
def test_on_one_database_everybody_sees_their_own_at_once(tmp_path: Path, definitions: Path) -> None:
    url = server("18").made(schema_of(tmp_path))
    one, other = (threadline.open(url, definitions=definitions) for _ in range(2))
    for turn in range(1, 6):
        for app, who in ((one, "ada"), (other, "bob")):
            app.track(who, "result_shared")
            mine = app.leaderboards.standing(f"user_id:{who}", "points", around=2)
            assert (mine.score, mine.rank) == (15 * turn, 1)
    one.close()
    other.close()


@pytest.mark.slow
def test_processes_that_spend_at_once_never_overdraw(tmp_path: Path, definitions: Path) -> None:
    url = server("18").made(schema_of(tmp_path))
    app = threadline.open(url, definitions=definitions)
    app.track("ada", "page")
    app.points.adjust(id="user_id:ada", points=1_000, request="start", reason="test")
    answers = [done(each) for each in [begin(url, definitions, "spend", f"p{number}") for number in range(3)]]
    assert all(told[::2] == told[1::2] for told in answers)
    assert Counter(status for told in answers for status in told[::2]) == {"spent": 27, "refused": 3 * 25 - 27}
    view = app.points.of("user_id:ada")
    assert (view.balance, view.spent) == (1_000 - 27 * 37, 27 * 37)
    app.close()
