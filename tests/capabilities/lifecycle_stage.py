"""One rule, written, activated and asked by operations."""

from __future__ import annotations

from typing import Any

from tests.capabilities.asked import Asked

SCORE: dict[str, Any] = {
    "name": "Score",
    "conditions": {"field": "event.properties.score", "greater_than": 80},
    "actions": [{"store_decision": {"result": "reject"}}],
}


def rule(above: int = 80, **more: Any) -> dict[str, Any]:
    return {**SCORE, "conditions": {"field": "event.properties.score", "greater_than": above}, **more}


def asked_with_set(definitions: str = "") -> Asked:
    asked = Asked(definitions=definitions)
    asked.ask("rule_sets_write", name="apps", events=["applied"], rules=["score"])
    return asked


def write(asked: Asked, above: int = 80, **more: Any) -> int:
    answer = asked.ask("rules_write", id="score", rule=rule(above), **more)
    return int(answer["version"])


def activate(asked: Asked, above: int = 80) -> int:
    version = write(asked, above)
    asked.ask("rules_activate", id="score", version=version, untested=True)
    return version


def decided(asked: Asked, score: int = 91, **fields: Any) -> list[tuple[str, int]]:
    receipt = asked.tell("applied", user_id="ada", properties={"score": score}, **fields)
    found = asked.ask("decisions_list", event=receipt["id"])["decisions"]
    return [(each["status"], each["version"]) for each in found]


def log(asked: Asked) -> list[tuple[int, str]]:
    return [(each["version"], each["to"]) for each in asked.ask("rules_log", id="score")["log"]]
