"""The template, applied to MiniStack: an emulator that translates it, makes its resources and runs its functions.

The functions run as they would on AWS: called by the API, by their queue and by the table's stream, under their own
roles, whose policies the emulator evaluates.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.deploy import template
from tests.servers.dynamodb import Server
from tests.servers.ports import free_port

NAME = "people"
REGION = "us-east-1"
NOT_EMULATED = ("Budget", "IngestErrorRate", "LakeBucketPolicy")
"""A type that MiniStack doesn't know, an alarm over an expression, which it refuses, and what denies connections
without encryption, as those to it are."""
SECONDS_MAX = 60.0
PACKAGE = "THREADLINE_TEST_LAMBDA_PACKAGE"
"""A package that was made for this Python and this processor, with what the lake needs: its code runs then."""


class Stack:
    """The running emulator with the stack."""

    def __init__(self, definitions: Path) -> None:
        program = Path(sys.executable).with_name("ministack")
        if not program.exists():
            pytest.skip("no MiniStack here: install the package ministack")
        port = free_port()
        environment = {
            "GATEWAY_PORT": str(port),
            "BIND_HOST": "127.0.0.1",
            "AUTH": "true",
            "LOG_LEVEL": "WARNING",
            "SFTP_ENABLED": "0",
            "IOT_MTLS_ENABLED": "0",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "PYTHONPATH": os.pathsep.join(sys.path),
            "AWS_DEFAULT_REGION": REGION,
        }
        self.server = Server([str(program)], port, environment)
        self.outputs = self._make(definitions)
        self._route()

    def client(self, service: str) -> Any:
        """A client of one service, as the owner of the account."""
        return boto3.client(
            service,
            endpoint_url=self.server.endpoint,
            region_name=REGION,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    @property
    def store(self) -> str:
        """The URL of the store, on the emulator."""
        return f"{self.outputs['Store']}&endpoint={self.server.endpoint}"

    def resource(self, name: str) -> str:
        """The physical name of a resource of the template."""
        found = self.client("cloudformation").describe_stack_resource(StackName=NAME, LogicalResourceId=name)
        return str(found["StackResourceDetail"]["PhysicalResourceId"])

    def messages(self, queue: str) -> list[str]:
        """Those that are in a queue now; they are taken out of it."""
        client, url = self.client("sqs"), self.resource(queue)
        answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        for each in answer.get("Messages", []):
            client.delete_message(QueueUrl=url, ReceiptHandle=each["ReceiptHandle"])
        return [each["Body"] for each in answer.get("Messages", [])]

    def invoke(self, function: str, payload: Any) -> Any:
        """What a function answers, called by its ARN or by the last part of its name."""
        name = function if function.startswith("arn:") else f"{NAME}-{function}"
        answer = self.client("lambda").invoke(FunctionName=name, Payload=json.dumps(payload))
        content = json.load(answer["Payload"])
        assert "FunctionError" not in answer, content
        return content

    def log(self, name: str) -> str:
        """What a function has written, for the report of a test that fails."""
        logs, group = self.client("logs"), f"/threadline/{NAME}/{name}"
        events = logs.filter_log_events(logGroupName=group)["events"]
        return "\n".join(each["message"] for each in events)

    def _make(self, definitions: Path) -> dict[str, str]:
        storage, formation = self.client("s3"), self.client("cloudformation")
        storage.create_bucket(Bucket="packages")
        storage.put_object(Bucket="packages", Key="threadline.zip", Body=_package())
        body = template.source()
        for name in NOT_EMULATED:
            del body["Resources"][name]
        variables = body["Globals"]["Function"]["Environment"]["Variables"]
        variables["THREADLINE_STORE"]["Fn::Sub"] += f"&endpoint={self.server.endpoint}"
        # MiniStack hands parameters over as text, takes every schedule for one of the default group, and asks for a
        # permission to publish batches, which IAM doesn't have: `sns:Publish` is for both.
        source = body["Resources"]["IngestFunction"]["Properties"]["Events"]["Ingestion"]["Properties"]
        source["ScalingConfig"]["MaximumConcurrency"] = 10
        for statement in body["Resources"]["WorkPolicy"]["Properties"]["PolicyDocument"]["Statement"]:
            if statement.get("Action") == "scheduler:CreateSchedule":
                statement["Resource"]["Fn::Sub"] = statement["Resource"]["Fn::Sub"].replace("${Schedules}", "default")
            if statement.get("Action") == "sns:Publish":
                statement["Action"] = ["sns:Publish", "sns:PublishBatch"]
        given = {
            "CodeBucket": "packages",
            "CodeKey": "threadline.zip",
            "LakeCodeKey": "threadline.zip",
            "Definitions": str(definitions),
        }
        formation.create_stack(
            StackName=NAME,
            TemplateBody=json.dumps(body),
            Capabilities=["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"],
            Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in given.items()],
        )
        deadline = time.monotonic() + SECONDS_MAX
        while (stack := formation.describe_stacks(StackName=NAME)["Stacks"][0])["StackStatus"] != "CREATE_COMPLETE":
            assert time.monotonic() < deadline, stack
            assert stack["StackStatus"] == "CREATE_IN_PROGRESS", [
                (each["LogicalResourceId"], each.get("ResourceStatusReason"))
                for each in formation.describe_stack_events(StackName=NAME)["StackEvents"]
                if each["ResourceStatus"].endswith("FAILED")
            ]
            time.sleep(0.1)
        return {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}

    def _arn(self, function: str) -> str:
        described = self.client("lambda").get_function(FunctionName=self.resource(function))
        return str(described["Configuration"]["FunctionArn"])

    def _route(self) -> None:
        """Make the routes that the translation has in the API's OpenAPI document, which MiniStack doesn't read."""
        gateway, api = self.client("apigatewayv2"), self.resource("HttpApi")
        for path, methods in template.resources()["HttpApi"]["Properties"]["Body"]["paths"].items():
            integration = methods["x-amazon-apigateway-any-method"]["x-amazon-apigateway-integration"]
            [function] = re.findall(r"functions/\$\{(\w+)\.Arn\}", integration["uri"]["Fn::Sub"])
            made = gateway.create_integration(
                ApiId=api,
                IntegrationType="AWS_PROXY",
                PayloadFormatVersion=integration["payloadFormatVersion"],
                IntegrationUri=self._arn(function),
            )
            target = f"integrations/{made['IntegrationId']}"
            gateway.create_route(ApiId=api, RouteKey=path.removeprefix("/"), Target=target)


def _package() -> bytes:
    """The package that a variable names; else none, and the functions' code is found by the path of this process."""
    if PACKAGE in os.environ:
        return Path(os.environ[PACKAGE]).read_bytes()
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as package:
        package.writestr("README", "")
    return data.getvalue()
