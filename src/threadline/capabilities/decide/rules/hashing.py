"""The hash of a decision: SHA-256 over RFC 8785 of everything that it rests on, and of nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from threadline.kernel.canonical import standard_json

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
