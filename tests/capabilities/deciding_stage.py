"""Short rules, events they are asked about, and what they decided."""

from __future__ import annotations

from typing import Any

from tests.capabilities.asked import Asked

RISK = """
rules:
  risk:
    version: 4
    priority: 50
    conditions: {field: event.properties.score, greater_than: 80}
    actions:
      - store_decision: {result: reject, reason: "score ${event.properties.score} > 80"}
rule_sets:
  applications: {events: [applied], rules: [risk]}
"""


def rules(*bodies: str, sets: str = "", **more: str) -> str:
    """Definitions with rules a, b, c … asked of `applied`."""
    names = "abcdefgh"[: len(bodies)]
    lines = [f"  {name}: {{{body}}}" for name, body in zip(names, bodies, strict=True)]
    told = sets or f"  all: {{events: [applied], rules: [{', '.join(names)}]}}"
    return "rules:\n" + "\n".join(lines) + "\nrule_sets:\n" + told + "\n"


ALWAYS = "conditions: {field: event.type, equals: applied}"
NEVER = "conditions: {field: event.type, equals: other}"


def acting(*actions: str) -> str:
    return f"{ALWAYS}, actions: [{', '.join(actions)}]"


def applied(asked: Asked, score: Any = 91, **fields: Any) -> str:
    receipt = asked.tell("applied", user_id="ada", properties={"score": score}, **fields)
    assert receipt["status"] == "accepted", receipt
    return str(receipt["id"])


def events(asked: Asked, *types: str) -> list[dict[str, Any]]:
    found = asked.ask("events_of", id="user_id:ada", order="asc", limit=1_000, type=",".join(types))["events"]
    assert isinstance(found, list)
    return found


def views(asked: Asked) -> dict[str, Any]:
    found: dict[str, Any] = asked.engine.reader.views(
        asked.engine.reader.person("default", "user_id:ada"), asked.now + 1
    )
    return found


def decisions(asked: Asked) -> list[dict[str, Any]]:
    return [each["properties"] for each in events(asked, "decision_made")]
