"""Tables of the documentation, made of the declarations themselves."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.kernel.operation import Operation
from threadline.surfaces.http.codes import error_codes


def operations_table(operations: Iterable[Operation]) -> str:
    """Every operation by its group, as docs/http.md shows it."""
    rows: dict[str, list[str]] = {}
    for each in sorted(operations, key=lambda each: (each.group is not None, each.name)):
        group = "beside the groups" if each.group is None else f"`{each.group.name}`: {each.group.summary.rstrip('.')}"
        scope = "" if (each.method, each.scope) == ("GET", "read") else f" {each.scope}"
        rows.setdefault(group, []).append(f"`{each.verb}` {each.method} `{each.path}`{scope}")
    lines = [f"| {group} | {', '.join(found)} |" for group, found in rows.items()]
    return "\n".join(["| group | operations |", "|---|---|", *lines]) + "\n"


def errors_table() -> str:
    """Every code of an error or a rejection, as docs/errors.md shows it."""
    lines = ["| code | status | meaning |", "|---|---|---|"]
    lines += [f"| `{code}` | {status} | {meaning} |" for code, status, meaning in error_codes()]
    return "\n".join(lines) + "\n"
