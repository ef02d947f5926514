"""JSON Schema by jsonschema-rs: compiled once, with patterns in linear time and without ever fetching anything."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

import msgspec

from threadline.capabilities.foundation.definitions import Place, shown_place
from threadline.kernel.limits import SCHEMA_PATTERN_BYTES_MAX

Problem = Callable[[dict[str, Any]], str]
"""What is wrong with the properties of an event, in words; empty if they fit."""

PROBLEMS_SHOWN_MAX = 5
VALUES_EXPLAINED_MAX = 200
"""Of properties with more values no more than the first problem is told. The driver makes all problems when it is asked
for any, each takes longer than a small event does, and whoever has a write key may send an event with thousands."""
PLACE_LENGTH_MAX = 200
TEXT_LENGTH_MAX = 300
MASK = "the value"
"""What a message says in the place of a value, which may be a secret, or long."""


class Unfit(Exception):
    """A schema that cannot be compiled: where in it, and why."""

    def __init__(self, at: Place, text: str) -> None:
        super().__init__(text)
        self.at = at


def compile_schema(schema: dict[str, Any], *, branches: bool) -> Problem:
    """What tells the problems of properties by this schema. Raises `Unfit`.

    ``branches`` is whether alternatives stand in the schema: the reason why none of them fits is made of the problems
    of all, so that there is no first one.
    """
    import jsonschema_rs

    def compiled(mask: str | None) -> jsonschema_rs.Validator:
        return jsonschema_rs.Draft202012Validator(
            schema,
            validate_formats=True,
            ignore_unknown_formats=False,
            offline=True,
            mask=mask,
            # Not the engine with look-around and back-references: a text could make that one slow.
            pattern_options=jsonschema_rs.RegexOptions(SCHEMA_PATTERN_BYTES_MAX, SCHEMA_PATTERN_BYTES_MAX),
        )

    try:
        compiled(None)  # whoever wrote the schema is told of it in their own words
        validator = compiled(MASK)
    except jsonschema_rs.ValidationError as error:
        raise Unfit(tuple(error.instance_path), error.message) from None

    def problem(properties: dict[str, Any]) -> str:
        try:
            if validator.is_valid(properties):
                return ""
            if _values(properties) <= VALUES_EXPLAINED_MAX:
                return _several(validator.iter_errors(properties))
            if branches:
                return f"properties: they do not fit; of more than {VALUES_EXPLAINED_MAX} values it is not told where"
            validator.validate(properties)
        except jsonschema_rs.ValidationError as error:
            return _problem_text(error)
        except ValueError as error:
            return _cut(f"properties: they hold what JSON does not know: {error}", TEXT_LENGTH_MAX)
        raise AssertionError("what does not fit has a problem")

    return problem


def _values(properties: dict[str, Any]) -> int:
    return msgspec.json.encode(properties).count(b",") + 1


def _several(errors: Any) -> str:
    shown = "; ".join(_problem_text(error) for error in islice(errors, PROBLEMS_SHOWN_MAX))
    more = sum(1 for _ in errors)
    return f"{shown}; and {more} more" if more else shown


def _problem_text(error: Any) -> str:
    path = f"properties{shown_place(tuple(error.instance_path))}"
    return f"{_cut(path, PLACE_LENGTH_MAX)}: {_cut(error.message, TEXT_LENGTH_MAX)}"


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
