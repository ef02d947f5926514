"""The schema of the definitions, by which an editor helps."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.capabilities.features_mistakes import FILE, MISTAKES
from threadline.capabilities.foundation.definitions import schema
from threadline.capabilities.profile.features import SECTIONS, read_definitions
from threadline.capabilities.profile.features.definition import AGGREGATES

VALIDATOR = jsonschema_rs.Draft202012Validator(schema(SECTIONS))
SHIPPED: Any = yaml.safe_load(
    resources.files("threadline.capabilities.profile.features").joinpath("shipped.yaml").read_text(encoding="utf-8")
)


def test_the_schema_takes_what_ships_and_what_the_page_shows() -> None:
    page = (Path(__file__).parents[2] / "docs" / "features.md").read_text(encoding="utf-8")
    # The section of a capability beside this one has its own schema.
    blocks = [
        block.split("```")[0] for block in page.split("```yaml\n")[1:] if not block.startswith("feature_updates:")
    ]
    assert len(blocks) >= 5
    for written in [SHIPPED, *map(yaml.safe_load, blocks)]:
        assert [error.message for error in VALIDATOR.iter_errors(written)] == []
    for block in blocks:
        read_definitions([(FILE, block)])


STRUCTURAL = {
    "unknown key",
    "misspelt aggregate key",
    "no aggregate",
    "unknown aggregate",
    "no events",
    "an option of others",
    "a duration",
    "a bare number of days",
    "unknown operator",
    "null in a condition",
    "a bound that is no number",
    "exists",
    "not as an operator",
    "no operator",
    "an empty where",
    "a tree that needs a list around it",
    "a ratio of one",
    "a name",
    "no mapping",
    "a sign",
    "a part",
    "a currency",
}


@pytest.mark.parametrize("mistake", sorted(STRUCTURAL))
def test_the_schema_refuses_what_an_editor_can_see(mistake: str) -> None:
    assert not VALIDATOR.is_valid(yaml.safe_load(MISTAKES[mistake][0]))


def test_the_schema_offers_every_aggregate() -> None:
    assert schema(SECTIONS)["$defs"]["feature"]["properties"]["aggregate"]["enum"] == list(AGGREGATES)
