"""The capability keeps the laws that all of Threadline keeps, and leaves nothing behind when it is switched off."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import DEFINITIONS
from threadline_flags import CAPABILITY

import threadline
from threadline.engine.folding.capabilities import chosen
from threadline.kernel.errors import InvalidDefinition, NotFound
from threadline.settings import Settings
from threadline.surfaces.http.server.application import Application
from threadline.testing.capability_laws import broken


@pytest.mark.parametrize("seed", range(3))
def test_capability_with_flags_breaks_no_law(seed: int) -> None:
    assert broken(CAPABILITY, [("threadline.yaml", DEFINITIONS)], seed=seed) == []


def test_capability_is_in_force_because_it_is_installed() -> None:
    assert CAPABILITY in chosen().on


def test_switched_off_nothing_of_it_is_left(tmp_path: Path) -> None:
    with threadline.open("memory:", settings=Settings(capabilities="-flags", access_log=False)) as shop:
        made = shop.engine.catalogue
        assert [name for name in made.index if name == "flags"] == []
        assert [operation.name for operation in made.operations if operation.name.startswith("flags_")] == []
        assert (made.screens, made.sql_views) == ((), ())
        paths = {route.path for route in Application(shop.engine, Settings(access_log=False)).router.routes}
        assert [path for path in paths if "flags" in path] == []
        with pytest.raises(NotFound, match="capability 'flags'"):
            made.operation("flags_list")
    file = tmp_path / "threadline.yaml"
    file.write_text(DEFINITIONS)
    with pytest.raises(InvalidDefinition, match="'flags' is of the capability 'flags'"):
        threadline.open("memory:", settings=Settings(capabilities="-flags"), definitions=file)


def test_what_people_were_shown_comes_back_with_the_capability(tmp_path: Path) -> None:
    from threadline_flags.events import FLAG_EXPOSED

    file, store = tmp_path / "flags.yaml", tmp_path / "shop.db"
    file.write_text("flags: {colour: {variants: {red: 1, blue: 2}, otherwise: red}}")
    shown = {"flag": "colour", "variant": "blue", "reason": "STATIC"}
    with threadline.open(store, definitions=file) as shop:
        shop.identify("ada")
        exposed = threadline.Event(
            type=FLAG_EXPOSED,
            identifiers=(threadline.Identifier("user_id", "ada"),),
            occurred_at=1,
            key="1",
            source_type="internal",
            properties=shown,
        )
        assert shop.engine.recorder.record([exposed])[0].status == "accepted"
        before = shop.person("ada").views["flags"]
    with threadline.open(store, settings=Settings(capabilities="-flags")) as shop:
        shop.identify("ada", {"first_name": "Ada"})
        assert "flags" not in shop.person("ada").views
    with threadline.open(store, definitions=file) as shop:
        assert shop.person("ada").views["flags"] == before
