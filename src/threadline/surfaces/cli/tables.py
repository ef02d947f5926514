"""Tables of the documentation, made of the declarations themselves."""

from __future__ import annotations

from collections.abc import Iterable

from threadline.kernel.operation import Operation
from threadline.settings import describe
from threadline.surfaces.http.codes import error_codes


def settings_table() -> str:
    """Every setting, as docs/settings.md shows it."""
    lines = ["| variable | type | default | unit | reason |", "|---|---|---|---|---|"]
    for each in describe():
        default = f"`{each.default}`" if each.default != "" else "empty"
        lines.append(f"| `{each.variable}` | {each.type} | {default} | {each.unit} | {each.reason} |")
    return "\n".join(lines) + "\n"


def operations_table(operations: Iterable[Operation]) -> str:
    """Every operation, as docs/http.md shows it."""
    lines = ["| address | name | scope | what it does |", "|---|---|---|---|"]
    ordered = sorted(operations, key=lambda each: (each.path, each.method))
    lines += [f"| `{each.method} {each.path}` | `{each.name}` | {each.scope} | {each.summary} |" for each in ordered]
    return "\n".join(lines) + "\n"


def errors_table() -> str:
    """Every code of an error or a rejection, as docs/errors.md shows it."""
    lines = ["| code | status | meaning |", "|---|---|---|"]
    lines += [f"| `{code}` | {status} | {meaning} |" for code, status, meaning in error_codes()]
    return "\n".join(lines) + "\n"
