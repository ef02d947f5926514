"""Each idea once: where it has its home, and what a second one would look like."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.house.source import Source, sources
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.identity import IdentityRules
from threadline.stores.memory import MemoryStore

ENGINE_CHANGED = {
    "src/threadline/engine/erasure/applying.py:erasures.done_again": "the ledger is applied by an engine that is whole",
    "src/threadline/engine/erasure/applying.py:steps.certified": "what is certified goes into the ledger from then on",
    "src/threadline/surfaces/cli/importing.py:summary.rejected": "a number of that name, and no engine's",
    "src/threadline/surfaces/http/reloading.py:maintenance.reloader": "a server puts its own way to reload in",
    "src/threadline/surfaces/http/reloading.py:maintenance.writer": "the same for definitions that are written",
    "src/threadline/surfaces/http/reloading.py:shared.refresh_seconds": "two engines write to one store for a while",
}
"""``path:part.attribute`` -> why an engine is changed after it was made."""


def dotted(node: ast.AST) -> list[str]:
    """The names of ``a.b.c``; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return [*dotted(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def assigned(source: Source) -> Iterator[list[str]]:
    """The attributes that a file assigns, as dotted names, without those of ``self`` itself."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names = dotted(node)
            if len(names) > 2 or names[0] != "self":
                yield names


def test_an_engine_is_whole_when_it_is_made() -> None:
    """A part that is put in later is missing until then, and whoever makes another engine forgets it."""
    parts = set(vars(Engine(MemoryStore(), Catalogue([], IdentityRules({}, frozenset())), lambda: 0)))
    changed = {
        f"{source.path}:{'.'.join(names[-2:])}"
        for source in sources()
        for names in assigned(source)
        if names[-1] in parts or {"engine", "_engine", *parts} & set(names[:-1])
    }
    assert changed == set(ENGINE_CHANGED)
