"""A real OpenID Connect provider: `oidc-provider`, which is certified, in node."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "oidc_provider"
CLIENT = "threadline"
SECRET = "a secret of the client, %+&="


@contextmanager
def provider(port: int, back: str) -> Iterator[None]:
    """On a port; it sends browsers back to this address alone."""
    node = shutil.which("node")
    if node is None or not (FOLDER / "node_modules").is_dir():
        pytest.skip("node or the provider is missing: `make setup`")
    with subprocess.Popen(
        [node, str(FOLDER / "provider.mjs"), str(port), back],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", "the provider does not start"
            yield
        finally:
            process.kill()
