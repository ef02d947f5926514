"""Amazon's SES, SNS and SQS as MiniStack speaks them: an emulator, in a process of its own."""

from __future__ import annotations

import json
import sys
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.credentials import Credentials

from tests.servers.dynamodb import Server
from tests.servers.ports import free_port
from threadline.surfaces.queues.calls import SqsCalls


class Aws(Server):
    """The running emulator."""

    def client(self, service: str) -> Any:
        """A client of one service. It brings its credentials: those of the environment are another test's to set."""
        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name="eu-west-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def queue_calls(self) -> SqsCalls:
        """The same of SQS, without botocore, as workers call it."""
        return SqsCalls(self.endpoint, "eu-west-1", lambda: Credentials("test", "test"))

    def mails(self) -> list[dict[str, Any]]:
        """Every mail that SES has accepted."""
        with urllib.request.urlopen(f"{self.endpoint}/_ministack/ses/messages", timeout=10) as answer:
            by_account = json.load(answer)["messages"]
            return [each for mails in by_account.values() for each in mails]


@cache
def aws() -> Aws:
    """One for this process of tests."""
    program = Path(sys.executable).with_name("ministack")
    if not program.exists():
        pytest.skip("no MiniStack here: install the package ministack")
    port = free_port()
    environment = {
        "GATEWAY_PORT": str(port),
        "BIND_HOST": "127.0.0.1",
        "SERVICES": "s3,scheduler,ses,sns,sqs",
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
    }
    return Aws([str(program)], port, environment)
