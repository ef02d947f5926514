"""Regular expressions in linear time, by RE2: whatever the pattern and the text, none can hang the engine."""

from __future__ import annotations

from collections.abc import Callable

from threadline.kernel.errors import InvalidValue
from threadline.kernel.extra import missing

MEMORY_BYTES_MAX = 1 << 20
"""What one compiled pattern may take; a pattern that would need more is refused."""


def compile_regex(pattern: str) -> Callable[[str], bool]:
    """Whether a text holds a match of the pattern anywhere; ``^`` and ``$`` tie it to the ends.

    Raises `InvalidValue` for a pattern that RE2 does not take, and where RE2 is not installed.
    """
    if problem := missing("re2", "RE2", "rules"):
        raise InvalidValue(f"`regex` {problem}")
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_BYTES_MAX
    try:
        search = re2.compile(pattern.encode(), options).search
    except (re2.error, UnicodeEncodeError) as error:
        raise InvalidValue(f"{pattern[:80]!r} is not a regular expression of RE2: {_reason(error)}") from None

    def matches(text: str) -> bool:
        # A text with half a surrogate pair is no UTF-8; RE2 finds in it what lies outside of that.
        return search(text.encode("utf-8", "surrogatepass")) is not None

    return matches


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else error
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
