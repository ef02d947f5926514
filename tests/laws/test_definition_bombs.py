"""Law: whatever stands wherever users write, reading it ends, as a mistake or as a definition, within bounds.

The places come from what the pages and the demo show of every section: each value, and each list and mapping, gives
way to each bomb.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from threadline.app import catalogue

ROOT = Path(__file__).parents[2]
CASES = int(os.environ.get("THREADLINE_TEST_DEFINITION_BOMBS", "40"))
"""How many of all are tried, drawn by the seed; 0: all."""
DEMO = ROOT / "src" / "threadline" / "surfaces" / "cli" / "demo"
Place = tuple[str | int, ...]

BOMBS: dict[str, str] = {
    "brackets": "[" * 9_000 + "]" * 9_000,
    "mappings": "{a: " * 3_000 + "1" + "}" * 3_000,
    "nots": "{not: " * 400 + "{field: traits.x, exists: true}" + "}" * 400,
    "alls": "{all: [" * 400 + "{field: traits.x, exists: true}" + "]}" * 400,
    "itself": "&s {all: [*s], not: *s, a: *s}",
    "a list of itself": "&s [*s, *s]",
    "many keys": "{" + ", ".join(f"k{number}: {number}" for number in range(1_000)) + "}",
    "a long list": json.dumps(["x"] * 2_000),
    "digits": "9" * 9_000,
    "a number of base 60": "1" + ":59" * 9_000,
    "an exponent": "1e999999999",
    "no number": ".nan",
    "a huge duration": json.dumps("9" * 4_000 + "d"),
    "members": json.dumps("event.properties" + ".a" * 9_000),
    "holes": json.dumps("${" * 9_000 + "}"),
    "filled": json.dumps("${event.properties.a}" * 2_000),
    "parentheses": json.dumps("(" * 450 + ")" * 450),
    "repetitions": json.dumps("(a{100}){100}" * 50),
    "backtracking": json.dumps("(a*)*" * 300 + "$"),
    "a sum in a template": json.dumps("{{ 1" + " + 1" * 9_000 + " }}"),
    "blocks in a template": json.dumps("{% if person %}" * 3_000),
    "signs": json.dumps("-" * 50_000),
    "an address": json.dumps("http://" + "a." * 9_000 + "example/" + "%41" * 9_000),
    "zeros and breaks": json.dumps("\x00\r\n" * 3_000),
    "half of a pair": json.dumps("\ud800"),
    "a path": json.dumps("../" * 9_000 + "x.html"),
}
"""Name -> a piece of YAML."""
GAP = "threadline-gap"


def documents() -> dict[str, list[Any]]:
    """What is shown of each section."""
    pages = [page.read_text("utf-8") for page in sorted((ROOT / "docs").glob("*.md"))]
    texts = [block for page in pages for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]
    texts += [path.read_text("utf-8") for path in sorted(DEMO.glob("*.yaml"))]
    found: dict[str, list[Any]] = {section.name: [] for section in catalogue().sections}
    for text in texts:
        read = json.loads(json.dumps(yaml.safe_load(text), default=str))
        for name in found.keys() & read.keys() if isinstance(read, dict) else ():
            found[name].append(read[name])
    return found


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    """Where a bomb can stand, in whichever kind of value."""
    yield at
    for step, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from places(inner, (*at, step))


def with_gap(value: Any, at: Place) -> Any:
    """The same value with a gap at a place."""
    if not at:
        return GAP
    copied = list(value) if isinstance(value, list) else dict(value)
    copied[at[0]] = with_gap(copied[at[0]], at[1:])
    return copied


def cases() -> Iterator[tuple[str, str]]:
    """Name and text; of places whose names are the same but for one step from the end, only the first."""
    seen = set()
    for section, values in documents().items():
        for value in values:
            for at in places(value):
                shape = (section, len(at), *(step for step in at[-2:] if isinstance(step, str)))
                if shape not in seen:
                    seen.add(shape)
                    text = json.dumps({section: with_gap(value, at)})
                    for name, bomb in BOMBS.items():
                        yield f"{name} at {section} {at}", text.replace(json.dumps(GAP), bomb)


def last_said(texts: list[str]) -> tuple[str, str]:
    """The number of the text at which the process that reads them ended, and its errors; "end": it came to the end."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.laws.definition_reader"],
        input="\n".join(map(json.dumps, texts)) + "\n",
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.split()[-1], done.stderr[-3_000:]


def test_every_section_has_something_to_put_a_bomb_in() -> None:
    assert [section for section, values in documents().items() if not values] == []


def test_no_text_wherever_users_write_ends_the_process_that_reads_it(seed: int) -> None:
    drawn = list(cases())
    if CASES:
        drawn = Random(seed).sample(drawn, min(CASES, len(drawn)))
    last, errors = last_said([text for _, text in drawn])
    assert last == "end", (drawn[int(last)][0], errors)


def test_a_text_that_ends_the_process_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second text takes some seconds of processor time, the first some hundredths of one."""
    monkeypatch.setitem(os.environ, "THREADLINE_TEST_CPU_SECONDS", "1")
    long = "segments: " + json.dumps(["x"] * 200_000)
    assert last_said(["# nothing", long])[0] == "1"
