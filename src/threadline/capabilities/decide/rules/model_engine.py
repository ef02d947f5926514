"""Decision models are run by the library zen-engine, which knows GoRules' JDM; nothing else here knows the library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import InvalidValue
from threadline.kernel.extra import missing

_MESSAGE_LENGTH_MAX = 300


class Engine:
    """One graph, compiled. Immutable, and safe to be asked by several threads."""

    def __init__(self, graph: Mapping[str, Any]) -> None:
        """Raises `InvalidValue` for what is no graph."""
        zen = _library()
        try:
            self._decision = zen.ZenEngine().create_decision(canonical_json(graph).decode())
            self._decision.validate()
        except RuntimeError as error:
            raise InvalidValue(f"this is not a decision model: {_reason(error)}") from None

    def ask(self, context: Mapping[str, Any], *, trace: bool) -> tuple[Any, list[Mapping[str, Any]]]:
        """The result, and with ``trace`` what each node did, in order. Raises `InvalidValue` where it fails.

        The library gets canonical JSON: whatever order members had before, what it makes of them is the same.
        """
        try:
            answer = self._decision.evaluate(canonical_json(context), {"trace": trace, "max_depth": 1})
        except (RuntimeError, ValueError, TypeError) as error:
            raise InvalidValue(f"the decision model: {_reason(error)}") from None
        except BaseException as error:
            # What the library did not expect it throws past every handler; it must not end what records events.
            if type(error).__name__ != "PanicException":
                raise
            raise InvalidValue(f"the decision model: the library gave up: {_reason(error)}") from None
        nodes = sorted((answer.get("trace") or {}).values(), key=lambda node: node["order"])
        return answer["result"], nodes


def wrong_expression(text: str, *, cell: bool = False) -> str:
    """What is wrong with an expression; in a cell of a decision table a test such as ``> 5`` is one as well."""
    zen = _library()
    problem = _failure(zen.compile_expression, text)
    return "" if not problem or (cell and not _failure(zen.compile_unary_expression, text)) else problem


def _failure(compiled: Any, text: str) -> str:
    try:
        compiled(text)
    except (RuntimeError, ValueError) as error:
        return _reason(error)
    return ""


def _library() -> Any:
    if problem := missing("zen", "zen-engine", "rules"):
        raise InvalidValue(f"`model` {problem}")
    import zen

    return zen


def _reason(error: BaseException) -> str:
    """What the library says went wrong, without the addresses of its own code."""
    text = str(error).split("\n\nStack backtrace", 1)[0].strip()
    # What it says is JSON, sometimes with JSON in it; the innermost text is meant for people.
    while text.startswith("{"):
        try:
            reason = msgspec.json.decode(text)
        except msgspec.DecodeError:
            break
        source = reason.get("source") or reason.get("type")
        text = source if type(source) is str else str(source)
    return text[:_MESSAGE_LENGTH_MAX]
