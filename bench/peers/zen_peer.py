"""The peer for rules: a decision table of the GoRules engine with the same conditions, made as its documents say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import zen


class ZenTable:
    """One decision table that collects every row that matches, with its trace."""

    def __init__(self, rows: Sequence[Sequence[str]], fields: Sequence[str]) -> None:
        columns = [
            {"id": f"i{at}", "name": name, "type": "expression", "field": name} for at, name in enumerate(fields)
        ]
        rules = [
            {"_id": f"r{number}", **{f"i{at}": test for at, test in enumerate(row)}, "o": str(number)}
            for number, row in enumerate(rows)
        ]
        table = {
            "hitPolicy": "collect",
            "inputs": columns,
            "outputs": [{"id": "o", "name": "rule", "type": "expression", "field": "rule"}],
            "rules": rules,
        }
        nodes = [
            {"id": "in", "name": "in", "type": "inputNode"},
            {"id": "table", "name": "table", "type": "decisionTableNode", "content": table},
            {"id": "out", "name": "out", "type": "outputNode"},
        ]
        edges = [
            {"id": "e1", "sourceId": "in", "targetId": "table", "type": "edge"},
            {"id": "e2", "sourceId": "table", "targetId": "out", "type": "edge"},
        ]
        self._decision = zen.ZenEngine().create_decision(json.dumps({"nodes": nodes, "edges": edges}))

    def matching(self, properties: dict[str, Any]) -> list[int]:
        """The rows that match, with the trace made on the way."""
        result = self._decision.evaluate(properties, {"trace": True})["result"]
        return [row["rule"] for row in result]
