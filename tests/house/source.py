"""Reads the source tree as data: files, their syntax trees, what each imports and names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from threadline.engine.interpreter import gc_deferred

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "threadline"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file; ``path`` is relative to the repository, with slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax, when somebody first asks for it."""
        # The collector would look through the nodes of all files again and again, which takes longer than to read them.
        with gc_deferred():
            return ast.parse(self.text)

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """All nodes of its syntax, found once: two dozen tests ask for them, and there are a million."""
        with gc_deferred():
            return tuple(ast.walk(self.tree))

    @property
    def room(self) -> str:
        """The folder or file directly under the package that it belongs to, e.g. ``kernel`` or ``app``."""
        return Path(self.path).relative_to("src/threadline").parts[0].removesuffix(".py")


@cache
def sources() -> tuple[Source, ...]:
    """Every Python file of the package."""
    return tuple(read(file) for file in sorted(PACKAGE.rglob("*.py")))


@cache
def sources_of_tests() -> tuple[Source, ...]:
    """Every Python file of the tests, without what clients install beside them."""
    files = sorted((ROOT / "tests").rglob("*.py"))
    return tuple(read(file) for file in files if "node_modules" not in file.parts)


def read(file: Path, root: Path = ROOT) -> Source:
    """One file as data."""
    text = file.read_text()
    return Source(file.relative_to(root).as_posix(), text)


def rooms() -> set[str]:
    """What stands directly under the package: folders with Python in them and files, by name."""
    return {source.room for source in sources()} - {"__init__"}


@cache
def imports(source: Source) -> set[str]:
    """Top-level names of all modules that a file imports, wherever in the file it does so."""
    found = set()
    for node in source.nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@cache
def definitions(source: Source) -> tuple[tuple[str, int], ...]:
    """Names that a file gives: to itself, to classes, functions, parameters and variables, with their lines."""
    return tuple(_definitions(source))


def _definitions(source: Source) -> Iterator[tuple[str, int]]:
    yield Path(source.path).stem, 1
    for node in source.nodes:
        if isinstance(node, ast.ClassDef | Function):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name is not None:
            yield node.name, node.lineno
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            yield node.rest, node.lineno


def words(name: str) -> list[str]:
    """The words of a name: ``HTTPServerBase`` and ``http_server_base`` alike are http, server, base."""
    return [word.casefold() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)]


def public_methods(source: Source) -> Iterator[tuple[str, int]]:
    """Each class, and how many public methods it has."""
    for node in source.nodes:
        if isinstance(node, ast.ClassDef):
            methods = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            yield node.name, sum(not each.name.startswith("_") for each in methods)


def functions(source: Source) -> Iterator[tuple[str, int]]:
    """Every function of a file and how many lines it has, from its ``def`` to its end."""
    for node in source.nodes:
        if isinstance(node, Function):
            yield f"{source.path}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


@cache
def names_used(source: Source) -> set[str]:
    """Names and attributes that a file reads or imports."""
    found = set()
    for node in source.nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
    return found
