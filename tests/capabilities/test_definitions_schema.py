"""The JSON Schema of a file of definitions: every section that there is, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from threadline.app import catalogue
from threadline.capabilities.foundation.definitions import schema
from threadline.kernel.errors import InvalidDefinition

DOCS = Path(__file__).parents[2] / "docs"
WHOLE = jsonschema_rs.Draft202012Validator(schema(catalogue().sections))


def test_the_schema_knows_every_section_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text("qqq: 1")
    with pytest.raises(InvalidDefinition) as caught:
        catalogue([tmp_path / "threadline.yaml"])
    known = str(caught.value).partition("choose from ")[2].split(", ")
    assert known == sorted(section.name for section in catalogue().sections)
    assert WHOLE.is_valid({"settings": {"port": 80}, "identifiers": {"junk": ["x", 0]}, "timezone": "UTC"})
    for wrong in ({"feature": {}}, {"settings": {"prot": 1}}, {"settings": {"store": "x"}}):
        assert not WHOLE.is_valid(wrong), wrong


@pytest.mark.parametrize("page", ["people.md", "settings.md", "streaks.md", "features.md", "segments.md", "points.md"])
def test_the_schema_takes_what_the_pages_show(page: str) -> None:
    names = {section.name for section in catalogue().sections}
    text = (DOCS / page).read_text("utf-8")
    # Dates are texts to definitions.
    written = [
        json.loads(json.dumps(yaml.safe_load(block), default=str))
        for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    ]
    shown = [each for each in written if isinstance(each, dict) and each.keys() <= names]
    assert shown
    assert [error.message for each in shown for error in WHOLE.iter_errors(each)] == []
