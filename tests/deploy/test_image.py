"""The image, as far as it can be looked at without a Docker daemon."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys

from tests.deploy.template import ROOT

LINES = re.sub(r"\\\n\s*", "", (ROOT / "deploy/Dockerfile").read_text()).splitlines()
IGNORE = (ROOT / "deploy/Dockerfile.dockerignore").read_text().splitlines()


def instructions(name: str) -> list[str]:
    return [line.removeprefix(f"{name} ") for line in LINES if line.startswith(f"{name} ")]


def test_what_is_copied_is_there_and_reaches_the_build() -> None:
    assert IGNORE[0] == "*"
    sources = [
        source for line in instructions("COPY") if not line.startswith("--from") for source in shlex.split(line)[:-1]
    ]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in IGNORE, source


def test_parts_come_from_a_lock_with_hashes_and_the_process_is_nobody_special() -> None:
    installs = [line for line in instructions("RUN") if "pip install" in line and "EXTRAS" not in line]
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)
    # Kubernetes' runAsNonRoot takes a number alone.
    assert instructions("USER") == ["10001"]
    assert LINES.index("USER 10001") < LINES.index('ENTRYPOINT ["threadline"]')
    assert "--uid 10001" in " ".join(instructions("RUN"))


def test_the_health_check_asks_servers_only() -> None:
    [check] = [line.partition("CMD ")[2] for line in instructions("HEALTHCHECK")]
    program = json.loads(check)[2]
    # The check of a container whose first process is this one: no server there, and then one that doesn't answer.
    for command, code in (("threadline work", 0), ("threadline serve", 1)):
        line = "\\0".join(command.split())
        given = program.replace("pathlib.Path('/proc/1/cmdline').read_bytes()", f"b'{line}'").replace("8787", "9")
        assert subprocess.run([sys.executable, "-c", given], capture_output=True, check=False).returncode == code
