"""What README and deploy install has what the first screens show: in a bare environment, by the lock that they name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin

import httpx
import msgspec
import pytest
import yaml

from tests import bare
from tests.capabilities.test_definitions_extras import EVERYTHING
from tests.console.stage import elements
from tests.deploy.template import ROOT
from tests.docs.markdown import pages
from tests.house.source import sources
from threadline.app import catalogue_of
from threadline.kernel.errors import InvalidDefinition
from threadline.surfaces.console.screens import screens

pytestmark = pytest.mark.slow

SECONDS_MAX = 300
PAGE_BYTES_MAX, PART_BYTES_MAX = 100_000, 120_000
"""Of a page, and of what it loads later: on a phone's network more than that is waited for. The largest part is the
picture of cohorts by week over eighteen months, with a value for each of 3,000 fields."""
OF_EACH_SCREEN = 2
"""How many addresses are opened of one that has a name in its path: one person is as good as another."""
ALL_OF = "/analytics/"
"""Each of these is a screen of its own."""
LACKING = re.compile(r"not installed|needs [\w-]+, which|pip install|role=\"alert\"[^>]*>(?!</)", re.IGNORECASE)
GIVEN = {
    "feature": "monetary_total",
    "event": "purchase_completed",
    "steps": "purchase_completed\npurchase_completed",
    "type": "purchase_completed",
    "journey": "come_back",
    "segment": "good_customers",
    "name": "come_back",
}
"""What a form of the analyses asks for, of the demo's shop."""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the environment that the Makefile makes for `make demo`, and deploy.md for systemd."""
    return bare.environment(tmp_path_factory.mktemp("bare") / "run", bare.of_lock("run"))


@pytest.fixture(scope="module")
def package_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment into which `pip install .` put the package, without an extra."""
    return bare.environment(tmp_path_factory.mktemp("bare") / "alone", bare.of_package())


@pytest.fixture(scope="module")
def shop(python: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The store of the demo, and what it printed."""
    store = tmp_path_factory.mktemp("shop") / "shop.db"
    command = [python, "-m", "threadline", "demo", "--exit", "--port", "0", "--file", store]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
    assert ran.returncode == 0, ran.stderr
    return store, ran.stdout


@pytest.fixture(scope="module")
def browser(python: Path, shop: tuple[Path, str]) -> Iterator[httpx.Client]:
    """Somebody who is signed in to a server of the bare environment on that store, and may do everything."""
    ours = {"THREADLINE_TOKENS": "shop=secret-of-the-shop", "THREADLINE_DRAIN_SECONDS": "0"}
    command = [python, "-m", "threadline", "serve", "--file", shop[0], "--port", "0"]
    log = shop[0].with_name("server.log").open("wb")
    with log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, env={**os.environ, **ours}) as server:
        try:
            assert server.stdout is not None
            ready = next(line for line in server.stdout if line.startswith(b'{"ready":true'))
            url = msgspec.json.decode(ready)["url"]
            with httpx.Client(base_url=url, timeout=SECONDS_MAX, headers={"origin": url}) as client:
                signed = client.post("/sign-in", data={"name": "", "password": "secret-of-the-shop"})
                assert signed.status_code == 303, signed.text
                yield client
        finally:
            server.terminate()
            server.wait(SECONDS_MAX)


def test_the_demo_of_the_readme_leaves_nothing_out(shop: tuple[Path, str]) -> None:
    assert re.search(r"7  A mail.*8  A journey", shop[1], re.DOTALL)
    assert [line for line in shop[1].splitlines() if "Left out" in line or LACKING.search(line)] == []


def test_every_screen_of_the_console_opens_and_lacks_nothing(browser: httpx.Client) -> None:
    faults, opened = [], Counter[str]()
    waiting, seen = ["/"], {"/"}
    while waiting:
        address = waiting.pop(0)
        page = browser.get(address)
        if page.headers.get("content-type", "").startswith("text/html"):
            if page.status_code != 200 or LACKING.search(page.text):
                found = LACKING.search(page.text)
                around = page.text[max(0, found.start() - 200) : found.end() + 300] if found else page.text[:500]
                faults.append(f"{address}: {page.status_code}: {around}")
            if len(page.content) > (PART_BYTES_MAX if "part=" in address else PAGE_BYTES_MAX):
                faults.append(f"{address}: {len(page.content):,} bytes")
            for link in links(address, page.text):
                if link not in seen and (pattern := screen_of(link)) and is_wanted(pattern, link, opened):
                    seen.add(link)
                    opened[pattern] += 1
                    waiting.append(link)
    assert not faults, "\n\n".join(faults)
    assert {screen.path for screen in screens() if screen.in_navigation} <= set(opened) | {"/"}
    assert sum(opened.values()) > 60


def links(address: str, markup: str) -> Iterator[str]:
    """Where a page leads to, the parts of it that load later, and its form filled in."""
    asked: dict[str, str] = {}
    for tag, attributes in elements(markup):
        target = (attributes.get("href") if tag == "a" else "") or attributes.get("data-load")
        if target:
            yield urldefrag(urljoin(address, target))[0]
        if tag in ("input", "textarea", "select") and "required" in attributes:
            asked[str(attributes.get("name")).partition(":")[0]] = ""
    if address.startswith(ALL_OF) and "?" not in address and asked:
        yield f"{address}?{httpx.QueryParams({name: GIVEN[name] for name in asked})}"


def screen_of(link: str) -> str:
    path = link.partition("?")[0]
    for screen in screens():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", screen.path), path):
            return screen.path
    return ""


def is_wanted(pattern: str, link: str, opened: Counter[str]) -> bool:
    if re.search("[?&](start|stop)=", link):
        return False  # a period in which the demo has sold too little for a model has an answer that says so
    parts = 6 if "part=" in link else 0
    return link.startswith(ALL_OF) or opened[pattern] < OF_EACH_SCREEN + parts


# --- the package alone ----------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["check"], ["serve", "--port", "0"]], ids=["check", "serve"])
def test_without_extras_everything_that_is_declared_is_named_with_its_extra(
    package_alone: Path, command: list[str], tmp_path: Path
) -> None:
    (tmp_path / "threadline.yaml").write_text(json.dumps(reduce(merged, map(yaml.safe_load, EVERYTHING.values()))))
    ran = subprocess.run(
        [package_alone, "-m", "threadline", *command, "--file", tmp_path / "x.db"],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
        cwd=tmp_path,
    )
    assert (ran.returncode, list(tmp_path.glob("x.db*"))) == (1, [])
    for module, definition in EVERYTHING.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            with pytest.raises(InvalidDefinition) as alone:
                catalogue_of([("threadline.yaml", definition)])
        [(needed, extra)] = re.findall(r"(needs [\w-]+); .*(pip install '\.\[\w+\]')", str(alone.value))
        assert re.search(rf"{needed}; .*{re.escape(extra)}", ran.stdout + ran.stderr), ran.stdout + ran.stderr


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Two documents as one."""
    both = {name: merged(one[name], other[name]) for name in one.keys() & other.keys() if one[name] != other[name]}
    return {**one, **other, **both}


# --- the words of the pages --------------------------------------------------------------------


def test_make_systemd_and_docker_install_by_one_lock() -> None:
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^demo: \$\(VENV\)/\.run .*\n\t@\$\(BIN\)/threadline demo$", makefile, re.MULTILINE)
    assert "$(call INSTALL,requirements/run.txt)" in makefile
    assert "--requirement requirements/run.txt" in (ROOT / "docs/deploy.md").read_text()
    assert "ARG LOCK=run\n" in (ROOT / "deploy/Dockerfile").read_text()


def test_the_lock_of_the_image_has_what_the_smaller_one_has() -> None:
    assert bare.of_lock("run") <= bare.of_lock("image")


def test_a_bare_environment_has_what_its_lock_names_and_no_more(python: Path) -> None:
    names = ("apsw", "duckdb", "boto3", "pytest")
    code = f"from importlib.util import find_spec; print(*[find_spec(name) is not None for name in {names}])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=SECONDS_MAX, check=True)
    assert done.stdout.split() == ["True", "True", "False", "False"]


def test_nothing_names_an_index_that_has_no_threadline() -> None:
    texts = {source.path: source.text for source in sources()} | {page.name: page.read_text() for page in pages()}
    assert [name for name, text in texts.items() if re.search(r"pip install \W?threadline\b(?![-/])", text)] == []
    assert [source.path for source in sources() if "pip install" in source.text] == ["src/threadline/kernel/extra.py"]


def test_the_start_page_says_what_each_extra_is_for() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    table = (ROOT / "docs/start.md").read_text().partition("| extra | for |")[2].partition("\n\n")[0]
    named = {name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)}
    assert named == set(declared) - {"test", "dev", "bench", "docs"}
