"""What nobody uses is removed: a function or class is named somewhere in the product, or called from outside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.source import PACKAGE, ROOT, Function, Source, sources

CALLED_FROM_OUTSIDE = {
    "format_commands": "click",
    "handle_DATA": "aiosmtpd",
    "handle_data": "html.parser",
    "handle_endtag": "html.parser",
    "handle_starttag": "html.parser",
    "ignore_aliases": "PyYAML",
    "is_trace_id_random": "OpenTelemetry",
    "makefile": "http.client",
    "on_parse": "Strawberry",
    "on_validate": "Strawberry",
    "process_errors": "Strawberry",
    "readinto": "io",
    "property_schemas": "pages and pickers to come read the properties of a declared type",
    "send_400_response": "uvicorn",
    "undeclared": "a law about the answers of operations",
}
"""Function -> the library that calls it by this name, or what else does."""

NAME = re.compile(r"[A-Za-z_]\w*")
TEXT_LENGTH_MAX = 200
"""A longer text is prose, and names in it are no use of them."""


def named(source: Source) -> Iterator[str]:
    """The names that a file uses, in short texts such as annotations too; those in its docstrings are no use."""
    docstrings = {id(node.value) for node in source.nodes if isinstance(node, ast.Expr)}
    for node in source.nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from NAME.findall(node.value) if len(node.value) <= TEXT_LENGTH_MAX else ()


def test_every_function_and_class_is_used() -> None:
    """By the product, its templates or its documented Python API; the test kit is used by tests."""
    product = [source for source in sources() if source.room != "testing"]
    used = {name for source in sources() for name in named(source)}
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *(ROOT / "deploy").rglob("*.py")]
    files = [each for each in PACKAGE.rglob("*") if each.suffix in (".html", ".sql", ".js")]
    used |= {name for file in [*pages, *files] for name in NAME.findall(Path(file).read_text())}
    given = {
        node.name: source.path
        for source in product
        for node in source.nodes
        if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("__") and not is_operation(node)
    }
    assert {name: path for name, path in given.items() if name not in used | set(CALLED_FROM_OUTSIDE)} == {}
    assert set(CALLED_FROM_OUTSIDE) <= set(given)


def is_operation(node: ast.ClassDef | Function) -> bool:
    """Whether it is declared as an operation, which discovery finds and callers name in their own ways."""
    called = [each.func for each in node.decorator_list if isinstance(each, ast.Call)]
    return any(isinstance(each, ast.Name) and each.id == "operation" for each in called)


BESIDE = ("bench", "deploy", "plugins", "release")
"""Folders with programs that use the product, and are no part of it."""
OF_BEFORE = "at_45fdf71.py"
"""Runs with an earlier version of the product."""


def test_programs_beside_the_product_import_what_there_is() -> None:
    """A name that is removed while one of them needs it is found here, not when the program is run."""
    missing = []
    for folder in BESIDE:
        for file in (ROOT / folder).rglob("*.py"):
            if "node_modules" in file.parts or file.name == OF_BEFORE:
                continue
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "threadline":
                    missing += [
                        f"{file}: {node.module}.{name.name}" for name in node.names if not _is_there(node, name)
                    ]
    assert missing == []


def _is_there(node: ast.ImportFrom, name: ast.alias) -> bool:
    path = PACKAGE.joinpath(*str(node.module).split(".")[1:])
    if (path / f"{name.name}.py").exists() or (path / name.name / "__init__.py").exists():
        return True
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.exists() and name.name in NAME.findall(file.read_text())
