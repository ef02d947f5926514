"""The checksums of a release, as ``sha256sum --check`` reads them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

SUMS = "SHA256SUMS"


def checksums(files: Iterable[Path]) -> str:
    """A line for each file, by name."""
    named = sorted(files, key=lambda file: file.name)
    return "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in named)
