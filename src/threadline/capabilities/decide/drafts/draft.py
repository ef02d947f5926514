"""A draft beside the definitions in force: what it declares, and what is wrong with both together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts.sections import ASIDE, keys_of, names_of
from threadline.capabilities.foundation.definitions import Definitions, Problem
from threadline.capabilities.foundation.definitions.document import DRAFT
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.operation import Context
from threadline.kernel.ports import Catalogue

TEXT_MAX = 100_000
Text = Annotated[
    str,
    Meta(
        description="YAML, or JSON, which is YAML: a file of definitions, or with `section` and `name` what stands "
        "under this name.",
        max_length=TEXT_MAX,
    ),
]


class DraftProblem(msgspec.Struct, kw_only=True):
    """A mistake or a warning, and where it stands."""

    file: Annotated[str, Meta(description="Empty: the text itself; else a file in force that does not go with it.")]
    line: Annotated[int, Meta(description="From 1; 0 where it stands at no single line.")]
    column: Annotated[int, Meta(description="From 1: where the wrong key or value begins.")]
    message: str
    hint: Annotated[str, Meta(description="What to do about it; empty where the message says all.")] = ""


class Read(NamedTuple):
    """A draft as it was read."""

    definitions: Definitions
    catalogue: Catalogue | None
    """None where something is wrong."""
    problems: list[Problem]


def read_draft(context: Context, text: str, section: str = "", name: str = "") -> Read:
    """The draft in the place of what has its names, beside everything else in force."""
    catalogue = context.engine.catalogue
    definitions = in_force(catalogue).with_draft(DRAFT, text, names_of(catalogue), keys_of(catalogue, section, name))
    for aside in ASIDE:
        definitions.section(aside)
    try:
        return Read(definitions, catalogue.variant(definitions), [])
    except InvalidDefinition as error:
        return Read(definitions, None, definitions.in_order(str(error).split("\n")))


def in_force(catalogue: Catalogue) -> Definitions:
    """What was declared."""
    definitions = catalogue.definitions
    return definitions if isinstance(definitions, Definitions) else Definitions()


def shown(text: str, problems: Sequence[Problem]) -> list[DraftProblem]:
    """Problems as callers read them; those of the draft first."""
    lines = text.splitlines()
    made = [_shown(lines, problem) for problem in problems]
    return sorted(made, key=lambda problem: (bool(problem.file), problem.file, problem.line, problem.column))


def _shown(lines: Sequence[str], problem: Problem) -> DraftProblem:
    message, _, hint = problem.message.rpartition("; ")
    file = "" if problem.file == DRAFT else problem.file
    column = problem.column
    if not (column or file) and 0 < problem.line <= len(lines):
        written = lines[problem.line - 1]
        column = len(written) - len(written.lstrip()) + 1
    return DraftProblem(
        file=file, line=problem.line, column=column, message=message or hint, hint=hint if message else ""
    )
