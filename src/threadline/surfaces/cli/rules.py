"""``threadline rules diff``: what another version of a rule would have changed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from threadline.surfaces.cli.session import Session
from threadline.surfaces.cli.what_if import trial_options, try_out

_VERSION = re.compile(r"([a-z0-9][a-z0-9_-]{0,63}):v?([0-9]{1,8})")


@click.command()
@click.argument("old", metavar="[OLD]")
@click.argument("new", metavar="NEW", required=False)
@trial_options
@click.pass_obj
def diff(session: Session, /, old: str, new: str | None, **given: Any) -> None:
    """Show how NEW differs from OLD, and what it would have changed on the history of this store.

    OLD and NEW are versions of a rule, such as risk-score:v3. NEW may also be a file of definitions; it is compared
    with what is in force, and so is NEW alone. Nothing is written, unless --save keeps the result.
    """
    try_out(session, {**given, **_question(*((None, old) if new is None else (old, new)))})


def _question(old: str | None, new: str) -> dict[str, Any]:
    version = _VERSION.fullmatch(new)
    if version is None:
        if old is not None:
            raise click.UsageError(f"{new} is not a version of a rule, such as risk-score:v3")
        if not Path(new).is_file():
            raise click.UsageError(f"{new} is neither a version of a rule, such as risk-score:v3, nor a file")
        return {"definitions": Path(new).read_text(), "file": new}
    question: dict[str, Any] = {"rule": version[1], "version": int(version[2])}
    if old is not None:
        before = _VERSION.fullmatch(old)
        if before is None or before[1] != version[1]:
            raise click.UsageError(f"{old} is not a version of the rule {version[1]!r}, such as {version[1]}:v1")
        question["against"] = int(before[2])
    return question
