"""Style as a test: the rules of the house that no linter knows. Every exception has its reason beside it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.source import (
    ROOT,
    Source,
    definitions,
    functions,
    imports,
    names_used,
    public_methods,
    read,
    rooms,
    sources,
    sources_of_tests,
    words,
)

LINES_PER_FILE_MAX = 800
LINES_PER_FUNCTION_MAX = 80

LONG_FILES: dict[str, str] = {}
"""Path -> why this file is one thing although it is long."""

LONG_FUNCTIONS: dict[str, str] = {}
"""``path:name`` -> why this function reads better in one piece."""

FORBIDDEN_WORDS = {"manager", "processor", "helper", "helpers", "util", "utils", "common", "base", "impl", "dto"}

FORBIDDEN_NAMES_ALLOWED: dict[str, str] = {}
"""``path:name`` -> whose word it is that we have to use."""

OWN_WORDS = {
    "told": "reported, known, shown",
    "said": "content, details, properties",
    "held": "stored, before, balance",
    "kept": "stored, remaining, applied",
    "turn": "lock, transition, change",
    "turns": "locks, transitions, changes",
    "overtaken": "conflicting",
    "parted": "split off",
    "judge": "evaluator",
    "asker": "reader",
}
"""Word of a dialect that this house had -> words that everybody knows."""

EMPTY_NAMES = {
    "each": "what an entry is: event, row, field",
    "found": "what it has: rows, match, problems",
    "one": "which of them it is: first, old, version",
}
"""Name that fits everything and so says nothing -> what to name instead. As part of a longer name it is a word."""

EMPTY_NAMES_ALLOWED = {
    "src/threadline/capabilities/profile/memory/definition.py:each": "member of a derivation: definition files have it",
    "src/threadline/capabilities/decide/whatif/operations/results.py:one": "published: a parameter and an answer",
}
"""``path:name`` -> who writes or reads that name outside of the code, so that it has to stay."""

METHODS_PER_CLASS_MAX = 20
METHODS_OF_ENGINE_MAX = 15

LARGE_CLASSES: dict[str, str] = {"Ports": "the list of what the engine does, a property for each port"}
"""Class -> why it has more public methods."""

UNUSED_LIMITS: dict[str, str] = {}
"""Limit -> why nothing checks it yet."""

DRIVERS = {
    # SQLite: a store, and the embedded search index.
    "apsw": "exports stores",
    "cryptography": "wire",
    "css_inline": "capabilities",
    "dkim": "capabilities",
    "duckdb": "exports",
    "httptools": "surfaces",
    "httpx": "surfaces",
    "idna": "kernel",
    "joserfc": "surfaces",
    "jsonschema_rs": "capabilities",
    "minijinja": "kernel surfaces",
    "mrml": "capabilities",
    "opentelemetry": "engine",
    "phonenumbers": "kernel",
    "psycopg": "stores",
    "pyarrow": "wire",
    "re2": "capabilities",
    "redis": "stores",
    "segno": "surfaces",
    "urllib3": "stores",
    "uvicorn": "surfaces",
    "zen": "capabilities",
    "zstandard": "stores",
}
"""Third-party driver -> the rooms in each of which exactly one file knows it."""

LIBRARIES = {
    "msgspec": {"*"},
    "yaml": {"*"},
    "starlette": {"surfaces"},
    "aiosmtpd": {"surfaces"},
    "graphql": {"surfaces"},
    "strawberry": {"surfaces"},
    "click": {"surfaces"},
    "rich": {"surfaces"},
    "uvloop": {"surfaces"},
    "vl_convert": {"surfaces"},
    # Amazon's services: a store, who sends mail, and the queue that takes in what comes of it.
    "boto3": {"exports", "senders", "surfaces"},
    "botocore": {"exports", "senders", "stores", "surfaces"},
    "mypy_boto3_s3": {"exports"},
    "mypy_boto3_sesv2": {"senders"},
    "mypy_boto3_sqs": {"surfaces"},
    "pyiceberg": {"exports"},
    # Type checkers know it without its being installed, and they alone read it.
    "typing_extensions": {"kernel"},
    # The test kit is used where these are installed, and by nothing that runs in production.
    "hypothesis": {"testing"},
    "pytest": {"testing"},
}
"""Third-party library that is no driver -> rooms that may use it."""

OURS = sys.stdlib_module_names | {"threadline"}

CLOCK_ROOMS = {"app", "features", "surfaces", "senders", "testing"}
"""Composition roots and edges: where the machine's clock may be named. Everything else is handed a clock."""

PURE_ROOMS = ("kernel", "capabilities", "wire")

CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


# --- the folder list is the architecture ----------------------------------------------------


def test_every_room_has_its_place_in_the_layers() -> None:
    contracts = CONFIG["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    placed = {name for layer in layers for name in re.findall(r"threadline\.(\w+)", layer)}
    assert rooms() <= placed, "place the new room in the layers of pyproject.toml"


def test_every_folder_is_a_package_with_its_sign() -> None:
    folders = {(ROOT / source.path).parent for source in sources()}
    assert [folder.name for folder in folders if not (folder / "__init__.py").exists()] == []


def test_a_driver_stands_in_one_file() -> None:
    users = {name: [source for source in sources() if name in imports(source)] for name in DRIVERS}
    rooms = {name: sorted(source.room for source in found) for name, found in users.items()}
    assert {name: " ".join(found) for name, found in rooms.items()} == DRIVERS


def test_libraries_stay_in_their_rooms() -> None:
    foreign = {(name, source) for source in sources() for name in imports(source) if name not in OURS | set(DRIVERS)}
    wrong = [
        f"{source.path}: {name}" for name, source in foreign if not {"*", source.room} & LIBRARIES.get(name, set())
    ]
    assert wrong == []


def test_the_clock_is_named_at_the_edges_only() -> None:
    wrong = [
        source.path
        for source in sources()
        if "system_clock" in names_used(source)
        and source.room not in CLOCK_ROOMS
        and source.path != "src/threadline/kernel/time.py"
    ]
    assert wrong == []


def test_pure_rooms_ask_no_calendar_for_the_present() -> None:
    # import-linter sees `time` and `random`; `datetime` is also a pure type, so its clock has to be looked for.
    wrong = [
        f"{source.path}:{node.lineno} {ast.unparse(node)}"
        for source in sources()
        if source.room in PURE_ROOMS
        for node in source.nodes
        if isinstance(node, ast.Attribute) and node.attr in {"now", "utcnow", "today"}
        if ast.unparse(node.value) in {"datetime", "date", "datetime.datetime", "datetime.date"}
    ]
    assert wrong == []


# --- files, functions and names ---------------------------------------------------------------


def test_files_open_with_their_sign() -> None:
    wrong = []
    for source in sources():
        sign = ast.get_docstring(source.tree, clean=False) or ""
        first = sign.split("\n", 1)[0]
        if not first.endswith((".", ":")) or first.count(" and ") > 2 or not source.text.startswith('"""'):
            wrong.append(f"{source.path}: {first!r}")
    assert wrong == [], "open the file with one line that says what this room is for"


def test_no_file_holds_what_a_merge_has_left_open() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    mark = re.compile(rb"^(<{7}|>{7}) \S", re.MULTILINE)
    paths = [ROOT / name for name in listed.split("\0") if name]
    assert [str(path) for path in paths if path.is_file() and mark.search(path.read_bytes())] == []


def test_files_are_short() -> None:
    long = {source.path for source in (*sources(), *sources_of_tests()) if source.text.count("\n") > LINES_PER_FILE_MAX}
    assert long == set(LONG_FILES), "split it by subject"


def test_functions_are_short() -> None:
    long = {name: lines for source in sources() for name, lines in functions(source) if lines > LINES_PER_FUNCTION_MAX}
    assert set(long) == set(LONG_FUNCTIONS), long


def test_classes_are_small() -> None:
    counts = [each for source in sources() for each in public_methods(source)]
    assert {name for name, count in counts if count > METHODS_PER_CLASS_MAX} == set(LARGE_CLASSES)
    assert all(count < METHODS_OF_ENGINE_MAX for name, count in counts if name == "Engine"), (
        "group what belongs together"
    )


def test_capabilities_type_what_they_are_given_of_the_engine() -> None:
    wrong = [
        f"{source.path}:{node.lineno} {ast.unparse(node)}"
        for source in sources()
        if source.room == "capabilities"
        for node in source.nodes
        if (isinstance(node, ast.arg) and node.annotation is not None)
        or (isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name))
        if untyped_engine(node)
    ]
    assert wrong == [], "else mypy proves nothing of what is asked of it: write `Context`, `Ports` or one port"


def untyped_engine(node: ast.arg | ast.AnnAssign) -> bool:
    """Whether a parameter or a field is an engine or a context of which nothing is known."""
    name = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
    assert node.annotation is not None
    kind = ast.unparse(node.annotation)
    return kind == "Any" and name.strip("_") in ("engine", "context", "ports")


def test_names_say_what_things_are() -> None:
    found = {
        f"{source.path}:{name}"
        for source in sources()
        for name, _ in definitions(source)
        if FORBIDDEN_WORDS & set(words(name))
    }
    assert found == set(FORBIDDEN_NAMES_ALLOWED)


def test_names_are_words_that_everybody_knows() -> None:
    found = {
        f"{source.path}:{line} {name}: {' or '.join(OWN_WORDS[word] for word in words(name) if word in OWN_WORDS)}"
        for source in sources()
        for name, line in definitions(source)
        if OWN_WORDS.keys() & set(words(name))
    }
    assert found == set()


def test_names_of_variables_say_what_they_hold() -> None:
    empty = dict(name for source in sources() for name in empty_names(source))
    unexplained = {f"{place}: {advice}" for name, (place, advice) in empty.items() if name not in EMPTY_NAMES_ALLOWED}
    assert unexplained == set()
    assert EMPTY_NAMES_ALLOWED.keys() == empty.keys(), "an exception that nothing needs any more goes"


def empty_names(source: Source) -> Iterator[tuple[str, tuple[str, str]]]:
    """``path:name`` of each variable, parameter or field whose name says nothing, with its line and what to name."""
    for name, line in definitions(source):
        if name in EMPTY_NAMES:
            yield f"{source.path}:{name}", (f"{source.path}:{line} {name}", EMPTY_NAMES[name])


def test_parameters_of_an_operation_without_any_are_the_shared_ones() -> None:
    found = {
        f"{source.path}:{node.lineno} {node.name}"
        for source in sources()
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and len(node.body) == 1 and isinstance(node.body[0], ast.Expr)
        if [ast.unparse(base) for base in node.bases] in (["msgspec.Struct"], ["Params"])
    }
    # Of an event type whose properties are free there is nothing to declare.
    assert {name.split()[1] for name in found} == {"Params", "NoParams", "Properties"}, found


def test_public_names_are_sorted_and_exist() -> None:
    import threadline

    assert list(threadline.__all__) == sorted(threadline.__all__)
    assert [name for name in threadline.__all__ if not hasattr(threadline, name)] == []


def test_every_limit_is_checked_somewhere() -> None:
    limits = next(source for source in sources() if source.path.endswith("kernel/limits.py"))
    named = {name for name, _ in definitions(limits)} - {"limits"}
    used = {name for source in sources() if source is not limits for name in names_used(source)}
    assert named - used == set(UNUSED_LIMITS)


def test_exceptions_give_their_reason() -> None:
    tables = (LONG_FILES, LONG_FUNCTIONS, FORBIDDEN_NAMES_ALLOWED, EMPTY_NAMES_ALLOWED, LARGE_CLASSES, UNUSED_LIMITS)
    for exceptions in tables:
        assert [name for name, reason in exceptions.items() if len(reason.split()) < 4] == []


# --- the lock -----------------------------------------------------------------------------------


def pins(lock: Path) -> dict[str, set[str]]:
    """Package -> versions that a requirements file pins; more than one where a marker decides."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", lock.read_text(), re.MULTILINE):
        found.setdefault(name.casefold().replace("_", "-"), set()).add(version)
    return found


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.stem)
def test_a_lock_pins_by_hash_and_names_no_host(lock: Path) -> None:
    text = lock.read_text()
    assert pins(lock), "nothing is pinned"
    assert re.findall(r"://|^\s*--(?!hash=).*", text, re.MULTILINE) == []
    entries = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)[1:]
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_locks_agree_with_each_other() -> None:
    together: dict[str, set[frozenset[str]]] = {}
    for lock in LOCKS:
        for name, versions in pins(lock).items():
            together.setdefault(name, set()).add(frozenset(versions))
    assert {name: versions for name, versions in together.items() if len(versions) > 1} == {}


def test_locks_hold_what_the_project_asks_for() -> None:
    extras = CONFIG["project"]["optional-dependencies"]
    asked = {
        "build": CONFIG["dependency-groups"]["build"],
        "run": CONFIG["project"]["dependencies"] + CONFIG["build-system"]["requires"] + extras["mail"],
        "image": [part for extra in ("mail", "aws", "lake", "postgres", "redis") for part in extras[extra]],
        "test": extras["parquet"] + extras["test"] + extras["dev"],
        "bench": extras["bench"],
        "docs": extras["docs"],
        "spark": extras["spark"],
    }
    assert {lock.stem for lock in LOCKS} == set(asked)
    for lock in LOCKS:
        names = {re.split(r"[<>=;\[ ]", line)[0].casefold() for line in asked[lock.stem]} - {"threadline"}
        assert names - set(pins(lock)) == set(), f"requirements/{lock.name} is behind pyproject.toml: run `make lock`"


# --- the checks themselves can fail -----------------------------------------------------------------


def test_the_readers_of_source_see_what_they_look_for(tmp_path: Path) -> None:
    file = tmp_path / "queue_manager.py"
    file.write_text(
        "import apsw as x\n\ndef run(base_value):\n    from yaml import load\n    dto = load(x.y)\n    return dto\n"
    )
    source = read(file, tmp_path)
    assert imports(source) == {"apsw", "yaml"}
    assert [name for name, _ in definitions(source)] == ["queue_manager", "run", "base_value", "dto"]
    assert dict(functions(source)) == {"queue_manager.py:run": 4}
    file.write_text("class A:\n    def b(self, engine: Any, c: Any, ports: Ports): ...\n    def _e(self): ...\n")
    few = read(file, tmp_path)
    assert list(public_methods(few)) == [("A", 1)]
    found = [node for node in few.nodes if isinstance(node, ast.arg) and node.annotation]
    assert [node.arg for node in found if untyped_engine(node)] == ["engine"]
    assert {"load", "x", "y"} <= names_used(source)
    assert words("HTTPServerBase2") == ["http", "server", "base", "2"]
    assert words("queue_manager") == ["queue", "manager"]
    assert words("baseline") == ["baseline"]


@pytest.mark.parametrize(
    "text",
    [
        "def f({}): ...",
        "def f(*, {}=1): ...",
        "def f(*{}): ...",
        "def f(**{}): ...",
        "def f():\n    {} = 1",
        "def f():\n    {}: int = 1",
        "def f(rows):\n    for _, {} in rows: ...",
        "def f(rows):\n    with rows as {}: ...",
        "def f(rows):\n    return [{0} for {0} in rows]",
        "def f(rows):\n    return sorted(rows, key=lambda {0}: {0}.order)",
        "def f(rows):\n    return ({} := rows)",
        "def f(rows):\n    try: ...\n    except ValueError as {}: ...",
        "def f(rows):\n    match rows:\n        case [{}]: ...",
        "def f(rows):\n    match rows:\n        case [*{}]: ...",
        "def f(rows):\n    match rows:\n        case {{**{}}}: ...",
    ],
)
def test_a_name_that_says_nothing_is_seen_wherever_it_is_given(text: str, tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    for name in EMPTY_NAMES:
        file.write_text(text.format(name))
        assert [planted for planted, _ in empty_names(read(file, tmp_path))] == [f"planted.py:{name}"]
        file.write_text(text.format(f"{name}_of_rows"))
        assert [*empty_names(read(file, tmp_path))] == []
