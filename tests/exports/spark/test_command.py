"""`threadline lake refold`, as it is called."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.exports.spark import stage
from tests.surfaces.cli_stage import Ran, call, composed, store  # noqa: F401 - fixtures
from threadline.exports.spark.states import published_rows

Call = Callable[..., Ran]
Patch = pytest.MonkeyPatch


@pytest.fixture
def lake(call: Call, store: Path, monkeypatch: Patch) -> Path:  # noqa: F811
    """The store's lake; commands find it by the environment."""
    folder = store.with_name("lake")
    monkeypatch.setenv("THREADLINE_LAKE", str(folder))
    assert call("lake", "sync").code == 0
    return folder


def test_a_refold_that_equals_the_store_exits_with_0(call: Call, lake: Path) -> None:  # noqa: F811
    ran = call("lake", "refold", "--check")
    assert (ran.code, ran.err) == (0, "")
    assert "1 person folded from 1 event in" in ran.out
    assert "1 person compared with the store: 0 differ; 0 have other events there than in the lake." in ran.out


def test_states_that_differ_are_named_with_exit_code_1(call: Call, lake: Path, monkeypatch: Patch) -> None:  # noqa: F811
    opened, real = stage.lake_in(lake), stage.single.refold
    named: list[str] = []

    def forged(*given: object) -> object:
        done = real(*given)  # type: ignore[arg-type]
        named.extend(row.person for row, _ in published_rows(opened, "default"))
        stage.forge(opened, named[0], lambda row: row._replace(states="{}"))
        return done

    monkeypatch.setattr(stage.single, "refold", forged)
    ran = call("lake", "refold", "--check")
    assert ran.code == 1
    assert f"differs  {named[0]}" in ran.out


def test_definitions_of_the_store_decide_what_is_folded(call: Call, lake: Path) -> None:  # noqa: F811
    features = "features:\n  own_count: {description: Mine., aggregate: count, events: [page]}\n"
    (lake.parent / "threadline.yaml").write_text(features)
    assert call("lake", "refold").code == 0
    [(_, definitions)] = published_rows(stage.lake_in(lake), "default")
    assert definitions != stage.RECIPE.definitions
    assert call("lake", "refold", "--check").code == 0


def test_without_a_lake_it_says_how_to_name_one(call: Call, store: Path) -> None:  # noqa: F811
    ran = call("lake", "refold")
    assert ran.code == 1
    assert "THREADLINE_LAKE" in ran.err


@pytest.mark.skipif(find_spec("pyspark") is not None, reason="PySpark is installed here")
def test_without_pyspark_it_says_what_to_install(call: Call, lake: Path) -> None:  # noqa: F811
    ran = call("lake", "refold", "--spark", "local[2]")
    assert ran.code == 1
    assert "pip install '.[spark]'" in ran.err
