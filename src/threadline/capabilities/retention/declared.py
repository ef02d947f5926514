"""What retention puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.definitions import Definitions
from threadline.capabilities.retention.definition import read_retention
from threadline.capabilities.retention.job import retention_job
from threadline.capabilities.retention.operations import operations


def declare(definitions: Definitions) -> list[Any]:
    """The preview, and the job where something is declared."""
    rules = read_retention(definitions)
    return [*([retention_job(rules)] if rules else []), *operations(rules)]
