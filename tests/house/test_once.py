"""Each idea once: where it has its home, and what a second one would look like."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.house.source import ROOT, Source, names_used, read, sources
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.identity import IdentityRules
from threadline.stores.memory import MemoryStore

ENGINE_CHANGED = {
    "src/threadline/engine/erasure/applying.py:erasures.done_again": "the ledger is applied by an engine that is whole",
    "src/threadline/engine/erasure/applying.py:steps.certified": "what is certified goes into the ledger from then on",
    "src/threadline/surfaces/importing/recording.py:summary.rejected": "a number of that name, and no engine's",
    "src/threadline/surfaces/http/server/reloading.py:maintenance.reloader": "a server puts its own way to reload in",
    "src/threadline/surfaces/http/server/reloading.py:maintenance.checker": "the same for what is made by hand",
    "src/threadline/surfaces/http/server/reloading.py:shared.refresh_seconds": "two engines write to one store",
}
"""``path:part.attribute`` -> why an engine is changed after it was made."""


def dotted(node: ast.AST) -> list[str]:
    """The names of ``a.b.c``; empty for anything else."""
    if isinstance(node, ast.Attribute):
        return [*dotted(node.value), node.attr]
    return [node.id] if isinstance(node, ast.Name) else []


def assigned(source: Source) -> Iterator[list[str]]:
    """The attributes that a file assigns, as dotted names, without those of ``self`` itself."""
    for node in source.nodes:
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


def users_of(names: set[str]) -> set[str]:
    """The files of the product, its test kit aside, that name one of these or import it."""
    return {source.path for source in sources() if source.room != "testing" and names & names_used(source)}


def test_the_zone_database_is_read_at_one_place() -> None:
    """A second reader took other names for zones: what one counted by Rome the other counted by UTC."""
    assert users_of({"ZoneInfo"}) == {"src/threadline/kernel/calendar.py"}


def test_which_zone_a_value_or_a_person_has_is_decided_at_one_place() -> None:
    """A second rule sent a mail by another clock than the journey had waited by."""
    readers = {source.path for source in sources() if re.search(r"\btraits\.get\(\"timezone\"\)", source.text)}
    assert readers == {"src/threadline/kernel/calendar.py"}


def test_local_days_are_counted_at_one_place() -> None:
    """Every change of clocks has two answers where two functions look for midnight."""
    assert users_of({"utcoffset", "fromordinal"}) == {"src/threadline/kernel/calendar.py"}


def test_who_is_in_which_arm_is_drawn_at_one_place() -> None:
    """A second function gives a person another arm, and an experiment counts them in both."""
    drawn = {
        source.path
        for source in sources()
        if source.room == "capabilities"
        for node in source.nodes
        if isinstance(node, ast.Call) and dotted(node.func) == ["int"] and "short_hash" in ast.unparse(node)
    }
    assert drawn == set()
    assert users_of({"arm_at"}) == {
        "src/threadline/capabilities/reach/broadcasts/definition.py",
        "src/threadline/capabilities/reach/journeys/walk.py",
    }


def test_the_conditions_of_a_tree_are_traced_at_one_place() -> None:
    """Of two tracers the fast one served flat trees only, and a change to one had to be made to both, to the byte."""
    assert users_of({"matches_missing"}) == {
        "src/threadline/capabilities/foundation/conditions/compiling.py",
        "src/threadline/capabilities/foundation/conditions/tracing.py",
    }


HTTP_CLIENTS = {"http.client", "httpx", "requests", "socket", "urllib.request", "urllib3"}
CALLERS = {
    "src/threadline/app.py": "the name of this machine, for leases",
    "src/threadline/senders/mail.py": "the name of this machine, for mail servers",
    "src/threadline/senders/smtp_connection.py": "mail servers are no web addresses",
    "src/threadline/stores/dynamodb/client.py": "a store's driver, with connections and limits of its own",
    "src/threadline/surfaces/cli/demo/server.py": "the demo waits for the server that it has started",
    "src/threadline/surfaces/http/server/connection.py": "the server's side of connections",
    "src/threadline/surfaces/http/server/connection_limits.py": "the server's side of connections",
    "src/threadline/surfaces/http/server/server.py": "the server's side of connections",
    "src/threadline/surfaces/python/client.py": "programs of users call a server with it",
}
"""File -> why it has sockets or an HTTP client of its own. Drivers of Amazon's services have theirs inside."""


def modules_imported(source: Source) -> set[str]:
    """The full names of the modules that a file imports, wherever in the file it does so."""
    names = set[str]()
    for node in source.nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


BELIEVED = {
    "src/threadline/capabilities/foundation/events/operations/resubmission.py": "by which way a rejected event came",
    "src/threadline/capabilities/decide/whatif/operations/runs.py": "whether the caller is this very process",
}
"""File -> why a capability compares where something came from. None of them is about who may say an event."""


def plugins() -> list[Source]:
    """The files of the distributions in plugins/."""
    return [read(path) for path in sorted(ROOT.glob("plugins/*/src/**/*.py"))]


def compared_sources(source: Source) -> list[str]:
    """The comparisons of a file with where an event came from, in Python and in SQL."""
    texts = [
        ast.unparse(node)
        for node in source.nodes
        if isinstance(node, ast.Compare) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
    ]
    return [text for text in texts if re.search(r"source_type\b\W{0,4}(=|<>|!=|in\b|IN\b)", text)]


def test_who_is_believed_is_decided_at_one_place() -> None:
    """Each capability had to remember to ask; what one forgot, a write key that stands in a page could say."""
    compared = {
        source.path: found
        for source in [*(source for source in sources() if source.room == "capabilities"), *plugins()]
        if (found := compared_sources(source))
    }
    assert compared.keys() == BELIEVED.keys(), compared
    assert sum(map(len, compared.values())) <= 3, compared


def test_other_systems_are_called_from_one_room() -> None:
    """A second caller waits for ever for an answer that drips, calls private addresses or gives up too soon."""
    callers = {source.path for source in sources() if modules_imported(source) & HTTP_CLIENTS}
    assert {path for path in callers if not path.startswith("src/threadline/outgoing/")} == set(CALLERS)


def test_versions_of_documents_are_stored_by_one_form() -> None:
    """Each document had its own loop of attempts, its own keys of versions, and its own words for a lost race."""
    own = {
        source.path: line.strip()
        for source in sources()
        if source.room == "capabilities"
        for line in source.text.splitlines()
        if ":08d}" in line or "keep changing" in line
    }
    assert own == {}


def test_events_of_a_person_are_put_in_order_by_one_rule() -> None:
    """Ties by position here and by hash there gave a session two first events."""
    by_time = r"ORDER BY (?:[\w$]+, )*(?:occurred_at|moment)"
    tied = re.compile(by_time + r"(?! (?:\$order|DESC), position|, position)")
    rooms = ("src/threadline/capabilities/", "src/threadline/exports/curated/", "src/threadline/exports/analytics/")
    assert tied.search("OVER (PARTITION BY person ORDER BY occurred_at)")
    assert [source.path for source in sources() if source.path.startswith(rooms) and tied.search(source.text)] == []


NODES_MIN = 30
"""A function with fewer nodes of syntax is a line or two, which may stand twice."""
TWICE = {
    (
        "src/threadline/engine/erasure/certificates_file.py",
        "src/threadline/stores/sqlite/file.py",
    ): "the engine and a store may not import each other, and what is below both touches no file",
    (
        "src/threadline/exports/lake/folder.py",
        "src/threadline/exports/lake/s3.py",
    ): "each storage reads by its own `tagged`",
}
"""Files -> why a function stands in both."""


def shape(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """What a function does, whatever it calls its variables; its name, signature, docstring and texts aside."""
    body = function.body[ast.get_docstring(function) is not None :]
    if sum(1 for statement in body for _ in ast.walk(statement)) < NODES_MIN:
        return ""
    written = "\n".join(map(ast.dump, body))
    written = re.sub(r"\b(id|arg)='\w+'", r"\1=''", written)
    return re.sub(r"Constant\(value='(?:[^'\\]|\\.)*'\)", "Constant(value='')", written)


def test_no_function_stands_twice() -> None:
    """One of two that do the same is mended, and the other goes on."""
    standing: dict[str, set[str]] = {}
    for source in sources():
        for node in source.nodes if source.room != "testing" else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (what := shape(node)):
                standing.setdefault(what, set()).add(source.path)
    assert {tuple(sorted(paths)) for paths in standing.values() if len(paths) > 1} == set(TWICE)
