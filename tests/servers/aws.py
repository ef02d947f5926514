"""Amazon's SES, SNS and SQS as MiniStack speaks them: an emulator, in a process of its own."""

from __future__ import annotations

import json
import os
import sys
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.servers.dynamodb import Server
from tests.servers.ports import free_port


class Aws(Server):
    """The running emulator."""

    def mails(self) -> list[dict[str, Any]]:
        """Every mail that SES has accepted."""
        with urllib.request.urlopen(f"{self.endpoint}/_ministack/ses/messages", timeout=10) as answer:
            by_account = json.load(answer)["messages"]
            return [each for mails in by_account.values() for each in mails]


@cache
def aws() -> Aws:
    """One for this process of tests. Its credentials, which mean nothing, stand in the environment."""
    program = Path(sys.executable).with_name("ministack")
    if not program.exists():
        pytest.skip("no MiniStack here: install the package ministack")
    port = free_port()
    os.environ.setdefault("AWS_ACCESS_KEY_ID", "test")
    os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "test")
    environment = {
        "GATEWAY_PORT": str(port), "BIND_HOST": "127.0.0.1", "SERVICES": "ses,sns,sqs",
        "SFTP_ENABLED": "0", "IOT_MTLS_ENABLED": "0", "LOG_LEVEL": "WARNING",
    }  # fmt: skip
    return Aws([str(program)], port, environment)
