"""S3 as MiniStack speaks it: an emulator, in a process of its own."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from tests.servers.dynamodb import Server
from tests.servers.ports import free_port


@cache
def s3() -> Server:
    """One for this process of tests."""
    program = Path(sys.executable).with_name("ministack")
    if not program.exists():
        pytest.skip("no MiniStack here: install the package ministack")
    port = free_port()
    environment = {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "SERVICES": "s3",
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
    }
    return Server([str(program)], port, environment)
