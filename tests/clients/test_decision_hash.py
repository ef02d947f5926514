"""The hash of a decision, recomputed by the npm implementation of RFC 8785 from what a client receives."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from tests.capabilities.asked import Asked
from tests.capabilities.deciding_stage import rules
from tests.capabilities.test_rules_worked import DECISIONS
from tests.clients.conftest import RunNode

pytestmark = pytest.mark.client

HOSTILE: list[Any] = [
    0, -0.0, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 10**16, 10**16 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 10**19,
    10**19 + 1, 1e16, 1e17, 9.3e18, 1e20, 123456789012345680000.0, 1e21, 1e300, -1e300, 5e-324, 1e-6, 1e-7, 0.1, 80.00,
    "9007199254740993", "80.00", "", 'a"b\\c\n\x00\x1f', "\u2028\U0001f9f5é", '12345678901234567890"',
    [2**53 + 1, [1e17, {"a": 2**60 + 1}]], [2**53 + 1] * 500, "x" * 3_000, True, None, [], {},
    {"\u20ac": 1, "\r": 2**53 + 1, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6},
]  # fmt: skip

N = "event.properties.n"
STORED = f"store_decision: {{result: review, n: '${{{N}}}', text: 'n is ${{{N}}}', big: 9007199254740995}}"
BODIES = (
    f"conditions: {{all: [{{field: {N}, exists: true}}, {{field: {N}, not_equals: 9007199254740993}}]}}",
    f"conditions: {{any: [{{field: {N}, greater_than: 9223372036854775809}}, {{field: {N}, exists: true}}]}}",
    f"conditions: {{field: {N}, less_than: -9007199254740993}}",
)
DEFINITIONS = rules(
    *(f"{body}, actions: [{{{STORED}}}]" for body in BODIES),
    sets="  all: {events: [applied], rules: [a, b, c], record: all}",
)


def audits() -> list[str]:
    """An audit for each decision about hostile values, as the JSON that a server answers."""
    asked = Asked(definitions=DEFINITIONS)
    for value in HOSTILE:
        receipt = asked.tell("applied", user_id="ada", properties={"n": value})
        assert receipt["status"] == "accepted", (value, receipt)
    decisions = asked.ask("decisions_list", person="user_id:ada", limit=500)["decisions"]
    assert len(decisions) == 3 * len(HOSTILE)
    found = [asked.ask("decisions_audit", decision=each["decision_id"]) for each in decisions]
    assert [each["problems"] for each in found if each["problems"]] == []
    return [msgspec.json.encode(each).decode() for each in found]


def test_a_decision_about_a_hostile_value_has_the_hash_that_npm_reckons(node: RunNode) -> None:
    given = audits()
    assert node("decisions.mjs", audits=given) == [hash_of(audit) for audit in given]


def hash_of(audit: str) -> str:
    found: str = msgspec.json.decode(audit)["decision"]["hash"]
    return found


def test_a_decision_about_a_hostile_value_is_verified_by_the_script_of_the_docs() -> None:
    found: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", DECISIONS, re.DOTALL)[0], found)
    assert [audit for audit in audits() if not found["verify"](found["json"].loads(audit))] == []
