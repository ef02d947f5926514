"""A client in TypeScript whose types a generator makes of the OpenAPI document: it compiles strictly, and it works."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest

from tests.clients.server import Server

pytestmark = [pytest.mark.client, pytest.mark.slow]

HERE = Path(__file__).parent
PROGRAM = HERE / "typed" / "calls.mts"
STRICT = {
    "strict": True,
    "noUncheckedIndexedAccess": True,
    "exactOptionalPropertyTypes": True,
    "module": "nodenext",
    "target": "es2022",
    "types": ["node"],
    "outDir": "made",
}


def ran(*command: str | Path, cwd: Path) -> str:
    """What a command prints; it must end well."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_program_with_generated_types_compiles_strictly_and_its_calls_record_and_read(
    server: Server, tmp_path: Path
) -> None:
    if shutil.which("node") is None or not (HERE / "node_modules").is_dir():
        pytest.skip("the node clients are missing; `make setup` installs them")
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    (tmp_path / "openapi.json").write_bytes(httpx.get(f"{server.url}/openapi.json").content)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": STRICT, "files": [PROGRAM.name]}))
    shutil.copy(PROGRAM, tmp_path)
    commands = HERE / "node_modules" / ".bin"
    # Without the flag the generator takes what a request may leave out for needed, because it has a default.
    flag = "--default-non-nullable=false"
    ran(commands / "openapi-typescript", "openapi.json", flag, "-o", "schema.ts", cwd=tmp_path)
    ran(commands / "tsc", "-p", ".", cwd=tmp_path)
    assert json.loads(ran("node", "made/calls.mjs", server.url, server.token, cwd=tmp_path)) == {
        "accepted": 1,
        "status": "accepted",
        "same": True,
        "people": ["string"],
        "broadcast": [409, "conflict"],
        "missing": [404, "not_found"],
        "wrong": ["body"],
    }
