"""``python -m release.lambda_package``: all that the functions of AWS Lambda need, in one ZIP for one architecture.

The parts come from the lock, each with its hashes; bytecode comes with them, because a function cannot write any, and
compiling 300 modules would be most of a cold start. The same tree makes the same bytes.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection
from pathlib import Path

from release.parts import ROOT, shipped_parts

PLATFORMS = {
    "arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "x86_64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64"),
}
"""Architecture -> the platforms of wheels that run on Amazon Linux 2023."""
UNPACKED_BYTES_MAX = 262_144_000
"""What Lambda takes."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_NOT_NEEDED = (
    "bin",
    "*.dist-info/RECORD",
    "*.dist-info/direct_url.json",
    "*.dist-info/REQUESTED",
    "pyarrow/include",
    "pyarrow/src",
    "pyarrow/tests",
    "pyarrow/*flight*",
    "zstandard/*cffi*",
)
"""Scripts, what names the folder that the installation was made in, and what nothing here imports: 40 MB of pyarrow,
and the half of zstandard that is for PyPy."""


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m release.lambda_package", description=__doc__)
    parser.add_argument("--architecture", choices=sorted(PLATFORMS), default="arm64")
    parser.add_argument("--python", default="3.13", metavar="VERSION", help="of the function's runtime")
    parser.add_argument("--extras", default="aws", help="separated by commas")
    parser.add_argument("--parts", default="", help="single parts of the lock; pyarrow for the function of the lake")
    parser.add_argument("--definitions", type=Path, help="a folder that is packed as `definitions`")
    parser.add_argument("--into", type=Path, required=True, help="the ZIP")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "package"
        _install(tree, given.architecture, given.python, requirements(given.extras.split(","), given.parts.split(",")))
        if given.definitions is not None:
            shutil.copytree(given.definitions, tree / "definitions")
        compile_tree(tree, _interpreter(given.python))
        size = write_zip(tree, given.into)
    sys.stdout.write(f"{given.into}: {given.into.stat().st_size:,} bytes, {size:,} unpacked\n")
    if size > UNPACKED_BYTES_MAX:
        raise SystemExit(f"Lambda takes {UNPACKED_BYTES_MAX:,} bytes unpacked: leave extras out, or use an image")


def requirements(extras: Collection[str], parts: Collection[str] = ()) -> str:
    """The parts of an installation with these extras, and further ones by name, as pip reads them: versions and hashes
    of the lock."""
    chosen = [
        part for part in shipped_parts() if not part.extras or set(part.extras) & set(extras) or part.name in parts
    ]
    return "".join(
        " ".join([f"{part.name}=={part.pin.version}", *(f"--hash=sha256:{each}" for each in part.pin.hashes)]) + "\n"
        for part in chosen
    )


def _install(tree: Path, architecture: str, python: str, wanted: str) -> None:
    listed = tree.with_name("requirements.txt")
    listed.write_text(wanted)
    platforms = [word for each in PLATFORMS[architecture] for word in ("--platform", each)]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
        "--no-deps",
    ]
    for_them = [*platforms, "--python-version", python, "--only-binary=:all:", "--target", str(tree)]
    _run([*pip, *for_them, "--require-hashes", "--requirement", str(listed)])
    wheels = tree.with_name("wheels")
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)])
    [wheel] = wheels.iterdir()
    _run([*pip, *for_them, str(wheel)])
    for pattern in _NOT_NEEDED:
        for path in tree.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def _interpreter(version: str) -> str:
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return sys.executable
    found = shutil.which(f"python{version}")
    if found is None:
        raise SystemExit(f"there is no python{version} here to make its bytecode: install it, or name another --python")
    return found


def compile_tree(tree: Path, interpreter: str) -> None:
    """Compile every module, so that the bytecode counts whatever date the files get when they are unpacked."""
    # By itself (-I): the environment may send bytecode to another folder.
    compile_all = ["-I", "-m", "compileall", "-q", "-j", "1", "--invalidation-mode", "unchecked-hash", "-s", str(tree)]
    # Some parts ship a module for another version of Python, which does not compile; nobody imports it.
    done = subprocess.run([interpreter, *compile_all, str(tree)], capture_output=True, text=True, check=False)
    ours = [path for path in tree.rglob("*.py") if path.relative_to(tree).parts[0] == "threadline"]
    if not all(any((path.parent / "__pycache__").glob(f"{path.stem}.*.pyc")) for path in ours):
        raise SystemExit(f"{interpreter} made no bytecode, without which a start takes seconds: {done.stderr}")


def write_zip(tree: Path, into: Path) -> int:
    """Pack a tree; its bytes unpacked. Names are sorted and dates fixed, so that the same tree makes the same bytes."""
    size = 0
    into.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(each for each in tree.rglob("*") if each.is_file()):
            about = zipfile.ZipInfo(str(path.relative_to(tree)), _EPOCH)
            about.compress_type, about.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            content = path.read_bytes()
            packed.writestr(about, content)
            size += len(content)
    return size


def _run(command: list[str]) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
