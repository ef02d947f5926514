"""What a command would cause, in words, and the question whether to go on."""

from __future__ import annotations

import sys

import click
from rich.console import Console

from threadline.capabilities.foundation.events.causes import must_be_confirmed, words
from threadline.kernel.consequences import Consequences
from threadline.kernel.errors import LimitExceeded


def show(console: Console, consequences: Consequences, label: str = "Causes") -> None:
    """Print what would follow."""
    console.print(f"{label}: {words(consequences)}.", highlight=False, soft_wrap=True)


def confirm(consequences: Consequences, *, yes: bool) -> None:
    """Ask whether to go on, if so much would be sent. Raises `LimitExceeded` where nobody can be asked."""
    if yes or not must_be_confirmed(consequences):
        return
    question = f"{words(consequences)}, all because of what was so before"
    if not sys.stdin.isatty():
        raise LimitExceeded(
            f"this would cause {question}", hint="Add --yes to go on, or take `existing: true` out of the definitions."
        )
    click.confirm(f"This causes {question}. Go on?", abort=True, err=True)
