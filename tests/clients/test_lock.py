"""The lock of the node clients: every part by version and hash, from whichever registry npm is set to."""

from __future__ import annotations

import json
import re
from pathlib import Path

HERE = Path(__file__).parent
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
