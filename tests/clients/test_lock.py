"""The lock of the node clients: every part by version and hash, from whichever registry npm is set to."""

from __future__ import annotations

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DOCS = ROOT / "docs"
SENDS = re.compile(r"segment|rudder|customerio|ht-sdks|jitsu|dittofeed|cloudevents")
"""Names of clients that send events."""
LOCK = json.loads((HERE / "package-lock.json").read_text())
PARTS = {name: part for name, part in LOCK["packages"].items() if name}


def test_what_is_asked_for_is_pinned() -> None:
    asked = json.loads((HERE / "package.json").read_text())["dependencies"]
    assert asked == LOCK["packages"][""]["dependencies"]
    for name, version in asked.items():
        assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+(-[a-z]+\.[0-9]+)?", version)
        assert PARTS[f"node_modules/{name}"]["version"] == version


def test_every_part_has_its_hash_and_no_address() -> None:
    assert [name for name, part in PARTS.items() if not part.get("integrity", "").startswith("sha512-")] == []
    assert [name for name, part in PARTS.items() if "resolved" in part] == []


def test_the_table_of_clients_names_each_that_the_tests_drive_in_its_version() -> None:
    rows = dict(
        re.findall(r"^\| `([\w@/-]+)` \| [\w, ]+ \| ([\d.]+) \|", (DOCS / "segment.md").read_text(), re.MULTILINE)
    )
    locked = {name.removeprefix("node_modules/"): part["version"] for name, part in PARTS.items()}
    locked |= dict(re.findall(r"^([\w-]+)==([\d.]+)", (ROOT / "requirements" / "test.txt").read_text(), re.MULTILINE))
    locked["cloudevents"] = PARTS["node_modules/cloudevents"]["version"]
    assert {name: locked.get(name) for name in rows} == rows
    driven = {name for name in LOCK["packages"][""]["dependencies"] if SENDS.search(name)}
    assert driven | {"segment-analytics-python", "rudder-sdk-python"} == set(rows)
