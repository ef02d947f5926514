"""People about whom rules decide, and what is asked of their decisions."""

from __future__ import annotations

from typing import Any

from tests.capabilities.asked import Asked
from threadline.engine.maintenance.dump import dump
from threadline.kernel.store import scan_pages

DEFINITIONS = """
rules:
  score:
    version: 2
    conditions:
      all:
        - {field: event.properties.score, greater_than: 80}
        - {field: traits.plan, equals: pro}
    actions:
      - store_decision: {result: reject, of: "${traits.plan}"}
      - tag: {tag: risky}
      - call_webhook: {destination: crm}
  spender: {conditions: {field: features.monetary_total, greater_than: 80}}
  never: {conditions: {field: event.properties.nothing, exists: true}}
rule_sets:
  apps: {events: [applied], rules: [score, spender, never]}
"""


def people() -> Asked:
    asked = Asked(definitions=DEFINITIONS)
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    return asked


def applied(asked: Asked, score: Any = 91, who: str = "ada", **fields: Any) -> str:
    return str(asked.tell("applied", user_id=who, properties={"score": score}, **fields)["id"])


def everything(asked: Asked) -> Any:
    store = asked.engine.store
    items = [item for table in store.tables() for item in scan_pages(store, table)]
    return dump(store, asked.engine.catalogue), items, len(store.feed("", 1_000))


def statuses(answer: dict[str, Any]) -> dict[str, str]:
    return {each["rule"]: each["status"] for each in answer["decisions"]}


def native(score: Any = 91, who: str = "ada", key: str = "try", **fields: Any) -> dict[str, Any]:
    return {"type": "applied", "identifiers": {"user_id": who}, "key": key, "properties": {"score": score}, **fields}
