"""The worked table of docs/rules.md, event by event; and what docs/decisions-made.md reckons hashes with."""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

from tests.capabilities.asked import Asked
from tests.kernel.test_canonical import NUMBERS
from threadline.engine.folding.packing import unpack
from threadline.kernel.store import scan_pages

PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
DEFINITIONS = re.findall(r"```yaml\n(rules:\n.*?)```", PAGE, re.DOTALL)[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in re.findall(r"^\|.*\|$", PAGE.split("\n## Worked: ")[1], re.MULTILINE)[2:]
]


def test_the_page_has_its_table() -> None:
    assert len(ROWS) == 10


def test_what_is_decided() -> None:
    asked = Asked(definitions=DEFINITIONS)
    for number, (type, properties, decided, output) in enumerate(ROWS):
        receipt = asked.tell(type, user_id="ada", properties=json.loads(properties))
        made = asked.ask("decisions_list", event=receipt["id"])["decisions"]
        expected = [tuple(decided.split(" "))] if decided else []
        assert [(each["rule"], each["status"]) for each in made] == expected, number
        assert [each["output"] for each in made] == ([json.loads(output)] if output else []), number
    person = asked.ask("person", id="user_id:ada")
    assert person["tags"] == ["high-risk"]
    assert asked.ask("points_of", id="user_id:ada")["earned"] == 50
    waiting = [unpack(item.value)[5] for item in scan_pages(asked.engine.store, "outbox")]
    assert [(kind, data["message"]) for kind, _, _, data in waiting] == 2 * [("notification", "Welcome back, Ada!")]
    assert asked.ask("decisions_verify")["breaches"] == []


DECISIONS = (Path(__file__).parents[2] / "docs" / "decisions-made.md").read_text(encoding="utf-8")


def test_the_script_that_trusts_nobody_writes_numbers_as_rfc_8785_does() -> None:
    found: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", DECISIONS, re.DOTALL)[0], found)
    doubles = {struct.unpack(">d", bytes.fromhex(bits))[0]: text for bits, text in NUMBERS.items()}
    said = {**doubles, 1e16: "10000000000000000", -1.5e-5: "-0.000015", 1.5e22: "1.5e+22", 0.5: "0.5", 100.0: "100"}
    assert {value: found["canonical"]([value]) for value in said} == {
        value: f"[{text}]" for value, text in said.items()
    }
