"""The hash of a decision: SHA-256 over RFC 8785 of everything that it rests on, and of nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from threadline.capabilities.foundation.conditions import Step
from threadline.kernel.canonical import standard_json
from threadline.kernel.limits import DECISION_VALUE_BYTES_MAX

ENGINE = 1
"""The version of the form of decisions; another one when the same inputs may give another decision, or another form."""


def decision_hash(
    content: bytes,
    inputs: Mapping[str, Any],
    status: str,
    output: Any,
    trace: Sequence[Any],
    wished: Sequence[Any],
    engine: int = ENGINE,
) -> str:
    """The hash, hex. ``content`` is `Rule.standard`; the others are plain values as a decision keeps them.

    It covers ``{"content", "engine", "inputs", "output", "status", "trace", "wished"}``, and so neither ids nor times:
    the same inputs give the same hash on every machine.
    """
    rest = {"engine": engine, "inputs": inputs, "output": output, "status": status, "trace": trace, "wished": wished}
    # `content` is the first of all members, so that it need not be written again for every decision.
    return hashlib.sha256(b'{"content":' + content + b"," + standard_json(rest)[1:]).hexdigest()


def field_name(field: str | list[str]) -> str:
    """The name of a field among inputs: as it is written, a list of steps as JSON."""
    return field if type(field) is str else standard_json(field).decode()


def inputs_of(steps: Sequence[Step]) -> dict[str, Any]:
    """What the steps of a trace have read."""
    return {field_name(step.field): step.actual for step in steps if step.matched is not None}


def shortened(value: Any) -> Any:
    """A value as a decision keeps it: itself, or if it is long, the hash of its canonical JSON and how long that is."""
    if value is None or type(value) in (bool, int, float):
        return value
    if type(value) is str and 4 * len(value) < DECISION_VALUE_BYTES_MAX:
        return value
    written = standard_json(value)
    if len(written) <= DECISION_VALUE_BYTES_MAX:
        return value
    return {"sha256": hashlib.sha256(written).hexdigest(), "bytes": len(written)}


def is_shortened(value: Any) -> bool:
    """Whether a kept value is only the hash of what was read."""
    return type(value) is dict and set(value) == {"sha256", "bytes"}


def plain_step(step: Step) -> dict[str, Any]:
    """A step of a trace as a decision keeps it, with every member, so that equal steps have equal forms."""
    return {
        "step": step.step,
        "field": step.field,
        "operator": step.operator,
        "expected": step.expected,
        "actual": shortened(step.actual),
        "matched": step.matched,
        "note": step.note,
    }
