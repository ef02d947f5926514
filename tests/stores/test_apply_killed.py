"""Changed definitions are put in force on a shared store by processes that die at commits: the end is as of one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

import threadline
from tests.mortal import Fate, Killed
from tests.servers import dynamodb, postgres
from tests.surfaces.test_cli_apply import DEFINITIONS, SHIPPED, apply_all, up_to_date
from threadline.app import catalogue
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.store import Store
from threadline.kernel.time import system_clock
from threadline.stores.memory import MemoryStore

PEOPLE = 5
LIVES_MAX = 60
OPENING: dict[str, Callable[[Path], Store]] = {
    "postgres": lambda folder: postgres.store_in(postgres.server("18"), folder),
    "dynamodb": lambda folder: dynamodb.ministack().open(folder),
}


def click(store: Store) -> None:
    """Everybody clicks, one of them once, the next one twice."""
    shop = threadline.Threadline(Engine(store, SHIPPED, system_clock))
    for number in range(PEOPLE):
        for click in range(number + 1):
            shop.track(f"u{number}", "click", key=f"{number}/{click}")


def changed(folder: Path, text: str) -> Catalogue:
    """The catalogue of changed definitions."""
    (folder / "threadline.yaml").write_text(text)
    return catalogue([folder])


def apply_undisturbed(store: Store, catalogues: list[Catalogue]) -> Engine:
    for each in catalogues:
        engine = Engine(store, each, system_clock)
        apply_all(engine)
    return engine


def known(engine: Engine) -> dict[str, tuple[int, list[str]]]:
    """Everybody's count of clicks, and their segments."""
    found = {}
    for person in engine.reader.all_people("default"):
        views = engine.reader.views(person, engine.recorder.now(), names=["features", "segments"])
        found[str(person.identifiers[person.id])] = (views["features"]["clicks"]["value"], sorted(views["segments"]))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(OPENING))
def test_apply_that_dies_at_its_commits_ends_as_one_undisturbed_run(kind: str, tmp_path: Path, seed: int) -> None:
    catalogues = [
        changed(tmp_path, DEFINITIONS),
        changed(tmp_path, DEFINITIONS.replace("greater_than: 1", "greater_than: 3").replace("leaderboards:", "#")),
    ]
    random, deaths = Random(seed), 0
    store = OPENING[kind](tmp_path)
    click(store)
    store.close()
    for each in catalogues:
        for _ in range(LIVES_MAX):
            store = OPENING[kind](tmp_path)
            fate = Fate(store)
            # Right before a commit, or before it learns that the commit went through. Later and later: index rows of
            # a changed projection are written by one life, from the first to the last.
            fate.killed_at, fate.after = random.randrange(1, 4 + deaths), random.random() < 0.7
            try:
                apply_all(Engine(store, each, system_clock))
                break
            except Killed:
                deaths += 1
            finally:
                store.close()
        else:
            raise AssertionError(f"it has not come to an end in {LIVES_MAX} lives")
    assert deaths > 5, "it was hardly ever killed"
    store = OPENING[kind](tmp_path)
    found = Engine(store, catalogues[-1], system_clock)
    model = MemoryStore()
    click(model)
    expected = apply_undisturbed(model, catalogues)
    assert up_to_date(found) == up_to_date(expected)
    assert (found.maintenance.stale(), found.maintenance.changes()) == ((), [])
    assert known(found) == known(expected)
    assert {name: segments for name, (_, segments) in known(found).items()} == {
        f"user_id:u{number}": ["clickers"] if number + 1 > 3 else [] for number in range(PEOPLE)
    }
    assert store.integrity() == []
    store.close()
