"""The list of commands for the help: `python -m threadline.surfaces.cli.listing` writes what ships into `listing.json`.

The help needs of each operation its name and a line. To have them from the operations, every capability is imported,
which takes a second; so what ships is written down, by `make format`, and read where nothing else is installed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from threadline.kernel.operation import Operation

FILE = Path(__file__).with_name("listing.json")
PLUG_INS = "threadline.capabilities"
"""The entry points by which distributions add capabilities."""


class Listing(NamedTuple):
    """What commands there are, apart from those that are written."""

    groups: dict[str, str]
    """Name of a group of commands -> what it is for."""
    commands: dict[str, str]
    """Name of a command, after that of its group -> what it does, in a line."""


def command_name(operation: Operation) -> str:
    """What calls an operation on the command line: its group and its verb."""
    named = operation.name if operation.group is None else f"{operation.group.name} {operation.verb}"
    return named.replace("_", "-")


def listed(operations: Iterable[Operation]) -> Listing:
    """The listing of operations, in the order of the alphabet."""
    shown = [operation for operation in operations if "cli" in operation.shown_on]
    groups = {o.group.name.replace("_", "-"): o.group.summary for o in shown if o.group is not None}
    commands = {command_name(operation): operation.summary for operation in shown}
    return Listing(dict(sorted(groups.items())), dict(sorted(commands.items())))


def shipped() -> Listing | None:
    """The listing of what ships; None where capabilities are named in the environment or installed beside it."""
    if os.environ.get("THREADLINE_CAPABILITIES") or entry_points(group=PLUG_INS):
        return None
    return Listing(**json.loads(FILE.read_text()))


def text() -> str:
    """What is to stand in `FILE`."""
    from threadline.surfaces.python.methods import built_in

    return json.dumps(listed(built_in())._asdict(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
