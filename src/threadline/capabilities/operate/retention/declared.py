"""What retention puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.operate.retention.definition import read_retention
from threadline.capabilities.operate.retention.job import retention_job
from threadline.capabilities.operate.retention.operations import operations
from threadline.kernel.lasting import Expiring


def declare(definitions: Definitions) -> list[Any]:
    """The preview, and the job and what it erases where something is declared."""
    rules = read_retention(definitions)
    expiring = [
        Expiring(f"retention rule {rule.name!r}", rule.place, rule.types, rule.days, rule.drops_results)
        for rule in rules
    ]
    return [*expiring, *([retention_job(rules)] if rules else []), *operations(rules)]
