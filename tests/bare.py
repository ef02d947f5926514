"""Virtual environments with what a reader has installed and no more, linked from that of the tests without an index."""

from __future__ import annotations

import re
import tomllib
import venv
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
_PINNED = re.compile(r"^([a-z0-9][\w.-]*==[^\\]*)\\$", re.MULTILINE)
_ELSEWHERE = ("..", "__pycache__")
"""Programs of a distribution, and what the interpreter has compiled for itself."""


def of_lock(name: str) -> set[str]:
    """The distributions that a lock of `requirements/` installs here."""
    requirements = map(Requirement, _PINNED.findall((ROOT / "requirements" / f"{name}.txt").read_text()))
    return {each.name for each in requirements if each.marker is None or each.marker.evaluate()}


def of_package(*extras: str) -> set[str]:
    """The distributions that come with the package, and with these extras of it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(each for extra in extras for each in project["optional-dependencies"][extra])]
    found: dict[str, None] = {}
    waiting = [(Requirement(each), "") for each in asked]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        try:
            needed = distribution(requirement.name).requires or []
        except PackageNotFoundError:
            continue  # what is not in the environment of the tests either
        if requirement.name not in found:
            found[requirement.name] = None
            waiting += [(Requirement(each), extra) for each in needed for extra in ("", *requirement.extras)]
    return set(found)


def environment(folder: Path, distributions: Iterable[str]) -> Path:
    """A virtual environment with these distributions and this tree; answers the path of its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    for name in distributions:
        there = distribution(name)
        for top in {file.parts[0] for file in there.files or ()} - set(_ELSEWHERE):
            link = site / top
            if not link.exists():  # a namespace that two distributions share is one folder
                link.symlink_to(Path(str(there.locate_file(top))))
    (site / "tree.pth").write_text(f"{ROOT / 'src'}\n")
    program = folder / "bin" / "threadline"
    program.write_text(f"#!{folder}/bin/python\nfrom threadline.surfaces.cli import main\n\nmain()\n")
    program.chmod(0o755)
    return folder / "bin" / "python"
