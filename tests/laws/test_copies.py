"""Laws: every place beside the store where data of people may lie is declared, and the page of erasures names it."""

from __future__ import annotations

import ast
import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import threadline
from tests.laws import erasure_stage, person_stage
from threadline.kernel.personal import Copy

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "erasure.md").read_text()
LAKE = (
    "tests/exports/test_lake_copies.py"
    "::test_curated_tables_and_states_lose_who_is_erased_with_the_events_they_are_made_of"
)
NO_COPY = {
    "threadline.app": "opens stores",
    "threadline.engine.confined_worker": "tells Linux which process to end first",
    "threadline.outgoing": "calls for others, who declare what they send",
    "threadline.stores.postgres": "the store itself",
    "threadline.exports.duck": "opens DuckDB, in memory",
    "threadline.surfaces.http": "answers of a server, files of definitions and keys of issuers",
    "threadline.surfaces.python": "calls of a client, and its own types",
    "threadline.surfaces.queues": "takes messages in",
    "threadline.surfaces.worker_process": "the terminal of a process",
    "threadline.surfaces.cli.demo": "invented people, in a folder of their own",
}
"""Modules and folders that write or call others, and put nothing of people anywhere but in the store; or the store."""
NETWORK = frozenset(
    {
        "boto3",
        "botocore",
        "duckdb",
        "http.client",
        "httpx",
        "opensearchpy",
        "psycopg",
        "pyiceberg",
        "redis",
        "requests",
        "smtplib",
        "socket",
        "sqlite3",
        "ssl",
        "threadline.outgoing.connections",
        "threadline.outgoing.fetching",
        "threadline.outgoing.public_call",
        "urllib.request",
        "valkey",
    }
)
"""Whoever imports one of these can put something outside."""
WRITING = frozenset({"write_bytes", "write_text", "fdopen"})


def source_of(module: ModuleType) -> str:
    return module.__spec__.loader.get_source(module.__name__) or ""  # type: ignore[union-attr]


def writes_outside(source: str) -> Iterator[str]:
    """Calls and imports of a module with which something can get to a file or another system."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in NETWORK or alias.name == "apsw")
        elif isinstance(node, ast.ImportFrom) and node.module in NETWORK:
            yield node.module
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, of = node.func.attr, ast.unparse(node.func.value)
            modes = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if name in WRITING or (name == "write" and of.endswith("storage")) or (name == "open" and of == "os"):
                yield f"{of}.{name}"
            if name == "open" and any(set(mode) & set("wax") and len(mode) < 4 for mode in modes):
                yield f"{of}.open"


def modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(threadline.__path__, "threadline."):
        if not info.name.startswith("threadline.testing") and not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def copies() -> dict[str, list[Copy]]:
    """The copies that are declared, by folder."""
    found = dict[str, list[Copy]]()
    for module in modules():
        own = [value for value in vars(module).values() if type(value) is Copy]
        if own:
            found.setdefault(module.__name__.rpartition(".")[0], []).extend(own)
    return found


def is_within(name: str, place: str) -> bool:
    return name == place or name.startswith(f"{place}.")


def test_what_can_put_something_outside_the_store_has_a_copy_declared_in_its_folder() -> None:
    declared = copies()
    writing = {
        module.__name__: sorted(set(calls))
        for module in modules()
        if (calls := list(writes_outside(source_of(module))))
    }
    undeclared = {
        name: calls
        for name, calls in writing.items()
        if name.rpartition(".")[0] not in declared and not any(is_within(name, place) for place in NO_COPY)
    }
    assert undeclared == {}
    assert [place for place in NO_COPY if not any(is_within(name, place) for name in writing)] == []


@pytest.mark.parametrize(
    "source",
    [
        "path.write_text(text)",
        "path.write_bytes(body)",
        "with path.open('ab') as file: ...",
        "descriptor = os.open(path, 0)",
        "with os.fdopen(descriptor, 'wb') as file: ...",
        "self.lake.storage.write(name, content)",
        "import sqlite3",
        "from http.client import HTTPSConnection",
        "from threadline.outgoing.connections import Connections",
        "def late():\n    import redis",
    ],
)
def test_a_way_out_of_the_store_is_seen(source: str) -> None:
    assert list(writes_outside(source)) != []
    assert list(writes_outside("with path.open('rb') as file: text = file.read()\nlog.write(entry)")) == []


def test_every_folder_of_exports_declares_its_copy() -> None:
    """Exports write through what other folders open, so their calls do not tell."""
    folders = {name for module in modules() if (name := module.__name__).startswith("threadline.exports.")}
    folders = {name for name in folders if any(other.startswith(f"{name}.") for other in folders)}
    assert folders - copies().keys() == {"threadline.exports.training"}, "which makes tables for whoever asks"


def test_the_page_of_erasures_says_of_every_copy_what_becomes_of_it() -> None:
    every = {copy.name: copy for own in copies().values() for copy in own}
    assert len(every) > 10
    named = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", PAGE)
    rows = [line for line in named.splitlines() if line.startswith("| ")]
    cells = {name.strip() for row in rows for name in re.split("[,;:]", row.split("|")[1])}
    assert {name for name in every if name.partition(",")[0] not in cells} == set()


@pytest.mark.parametrize("given", [{}, {"taken_out_by": copies, "why": "both"}])
def test_a_copy_says_what_takes_out_of_it_or_why_nothing_does(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="copy 'x'"):
        Copy("x", **given)  # type: ignore[arg-type]


# --- what is declared to take out of them -----------------------------------------------------

REACHED = {
    "Iceberg tables": "tests/exports/iceberg/test_iceberg.py::test_what_is_erased_is_in_no_file_of_the_tables",
    "Redis": "tests/stores/test_cached.py::test_what_was_deleted_is_gone_and_may_begin_anew",
    "columns of analytics": "tests/exports/test_analytics.py::test_an_erasure_reaches_the_copy_without_a_question",
    "curated tables": LAKE,
    "states of a refold": LAKE,
    "the lake": LAKE,
    "the search index in OpenSearch": (
        "tests/exports/search/test_opensearch.py::test_an_erased_event_is_gone_although_nothing_new_has_come"
    ),
    "the search index, embedded": (
        "tests/exports/search/test_embedded.py::test_of_an_erased_event_nothing_is_left_in_the_files"
    ),
    "values of people": "tests/exports/test_values.py::test_of_an_erased_person_nothing_is_left_in_the_file",
}
"""Copy -> the test in which what is declared for it takes out of a real copy what was erased."""


def test_every_copy_out_of_which_something_takes_what_was_erased_has_a_test_that_looks() -> None:
    declared = {copy.name for own in copies().values() for copy in own if copy.taken_out_by is not None}
    assert declared == REACHED.keys()


@pytest.mark.slow
def test_the_test_of_each_copy_fails_where_what_takes_out_of_it_is_idle() -> None:
    declared = {copy.name: copy.taken_out_by for own in copies().values() for copy in own if copy.taken_out_by}
    idle = {REACHED[name]: (what.__module__, what.__qualname__) for name, what in declared.items()}
    environment = {**os.environ, "THREADLINE_TEST_IDLE": json.dumps(idle)}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.laws.idle_copies",
        "-p",
        "no:cacheprovider",
        "-rA",
        *idle,
    ]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    failed = {line.split()[1].partition("[")[0] for line in done.stdout.splitlines() if line.startswith("FAILED ")}
    assert failed == idle.keys(), done.stdout[-3_000:]


# --- tables -----------------------------------------------------------------------------------

ELSEWHERE = {
    "damaged_event": "tests/engine/test_damage.py",
    "delivery_attempt": "tests/surfaces/test_webhook_deliveries.py",
    "delivery_attempt_time": "tests/surfaces/test_webhook_deliveries.py",
    "mail_provider_id": "tests/capabilities/test_feedback_recording.py",
    "shadow_decision": "tests/capabilities/test_rules_shadows.py",
    "what_if_progress": "tests/capabilities/test_whatif_job.py",
}
"""Tables that the laws of erasure and of archives have nothing in, and the file whose stage fills them."""


def test_every_table_that_may_have_something_of_a_person_has_it_in_a_law_of_erasure_or_of_archives() -> None:
    stage = erasure_stage.Stage()
    erasure_stage.crowded(stage)
    met = {*stage.store.tables(), *person_stage.Stage().engine.store.tables()}
    personal = {table.name for table in person_stage.CATALOGUE.tables if table.contents != "nobody"}
    assert personal - met == set(ELSEWHERE)
