"""Each distribution in `plugins/` is built, installed beside an installed Threadline, and passes its tests there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

from threadline.engine.folding.capabilities import shipped

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))
NOT_COPIED = shutil.ignore_patterns("__pycache__", "node_modules", "*.egg-info", ".*_cache")


def run(command: list[str], cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("THREADLINE_", "PYTHON"))}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, f"{done.stdout[-6_000:]}\n{done.stderr[-3_000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Threadline and every plug-in, as they are installed."""
    built = tmp_path_factory.mktemp("wheels")
    for source in (ROOT, *PLUGINS):
        run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(built)], source)
    return built


@pytest.fixture(params=PLUGINS, ids=lambda path: path.name)
def installed(request: pytest.FixtureRequest, wheels: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A plug-in beside Threadline: the interpreter, and a copy of its repository, in which nothing of ours is.

    The parts of other projects are those of the environment that the tests run in: no test asks a registry.
    """
    home = tmp_path / "environment"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(run([str(python), "-c", where], tmp_path).strip())
    plugin = request.param
    name = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]["name"].replace("-", "_")
    chosen = [str(next(wheels.glob("threadline-*.whl"))), str(next(wheels.glob(f"{name}-*.whl")))]
    run([sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(packages), *chosen], tmp_path)
    (packages / "parts-of-others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    repository = tmp_path / plugin.name
    shutil.copytree(plugin, repository, ignore=NOT_COPIED)
    for modules in plugin.rglob("node_modules"):
        if "node_modules" not in modules.parent.parts:
            (repository / modules.relative_to(plugin)).symlink_to(modules)
    shutil.rmtree(repository / "src")
    return python, repository


@pytest.mark.slow
@pytest.mark.client
def test_plugin_installed_beside_threadline_passes_its_own_tests(installed: tuple[Path, Path]) -> None:
    python, repository = installed
    where = run([str(python), "-c", "import threadline; print(threadline.__file__)"], repository)
    assert where.startswith(str(python.parents[1])), "the Threadline that is installed, not that of the checkout"
    # The plug-ins of pytest itself that are there are those of our tests.
    told = run([str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis"], repository)
    assert " passed" in told
    assert " skipped" not in told


OPEN = """
import json, sys
import threadline
from threadline.app import catalogue, operations
from threadline.engine.folding.capabilities import chosen
with threadline.open(sys.argv[1]) as shop:
    shop.identify("ada", {"first_name": "Ada"})
    views = sorted(shop.person("ada").views)
    in_force = [each.name for each in shop.engine.catalogue.operations]
print(json.dumps([[each.name for each in chosen().on], in_force, [each.name for each in operations()], views]))
"""


@pytest.mark.slow
def test_plugin_uninstalled_leaves_nothing_and_its_store_opens(installed: tuple[Path, Path], tmp_path: Path) -> None:
    python, repository = installed
    name = tomllib.loads((repository / "pyproject.toml").read_text())["project"]["name"].replace("-", "_")
    before = json.loads(run([str(python), "-c", OPEN, str(tmp_path / "shop.db")], tmp_path))
    packages = python.parents[1]
    for folder in (*packages.rglob(name), *packages.rglob(f"{name}-*.dist-info")):
        shutil.rmtree(folder)
    after = json.loads(run([str(python), "-c", OPEN, str(tmp_path / "shop.db")], tmp_path))
    alone = json.loads(run([str(python), "-c", OPEN, str(tmp_path / "new.db")], tmp_path))
    assert after == alone
    assert after[0] == [capability.name for capability in shipped()]
    assert all(set(less) < set(more) for less, more in zip(after[:3], before[:3], strict=True))


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_no_file_of_threadline_knows_a_plugin(plugin: Path) -> None:
    name = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]["name"]
    told = re.compile(rf"{re.escape(name)}|{re.escape(name.replace('-', '_'))}")
    assert [str(path) for path in (ROOT / "src").rglob("*.py") if told.search(path.read_text())] == []
    assert (plugin / "LICENSE").is_file()
    assert (plugin / "README.md").is_file()
