"""The W3C trace context: what a caller sends as `traceparent`, and what this process works for at present."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import NamedTuple

TRACEPARENT = "traceparent"
"""The header, and the name in `_meta` of MCP."""
_FORM = re.compile(r"(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


class TraceContext(NamedTuple):
    """A span of a trace."""

    trace: int
    span: int
    sampled: bool

    def __str__(self) -> str:
        """As a header says it."""
        return f"00-{self.trace:032x}-{self.span:016x}-{self.sampled:02x}"


def read_traceparent(text: str) -> TraceContext | None:
    """The span that a header names; None for none, and for one that cannot be read, as the W3C wants it."""
    match = _FORM.fullmatch(text.strip())
    if match is None or (match[4] and text.strip().startswith("00")):
        return None
    trace, span, flags = (int(match[number], 16) for number in (1, 2, 3))
    return TraceContext(trace, span, bool(flags & 1)) if trace and span else None


CURRENT: ContextVar[TraceContext | None] = ContextVar("threadline_trace", default=None)
"""The span that this thread or task is in, for links and for calls to others; None where nothing is traced."""
