"""Laws of the template: what it may grant, what it may make, and that nothing of it goes unwatched."""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy import template
from tests.deploy.template import ROOT, as_list, of_type, referred, resources, statements
from threadline.settings import Settings

GUARD = Path(__file__).parent / "cfn_guard/node_modules/@cdklabs/cdk-validator-cfnguard"
SERVICES = ("apigateway", "cloudwatch", "dynamodb", "identityandaccessmanagement", "lambda", "s3", "sqs")
COSTS_NOTHING_IDLE = {
    "AWS::ApiGatewayV2::Api",
    "AWS::ApiGatewayV2::Stage",
    "AWS::Budgets::Budget",
    "AWS::CloudWatch::Alarm",  # ten metrics of alarms are free
    "AWS::DynamoDB::Table",  # on demand
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Role",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::EventSourceMapping",
    "AWS::Lambda::Function",
    "AWS::Lambda::Permission",
    "AWS::Logs::LogGroup",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::SNS::Subscription",
    "AWS::SNS::Topic",
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
    "AWS::Scheduler::ScheduleGroup",
}
ALARMS_FREE = 10


def test_the_template_and_its_translation_pass_cfn_lint(tmp_path: Path) -> None:
    translation = tmp_path / "translated.json"
    translation.write_text(json.dumps(template.translated()))
    lint = Path(sys.executable).with_name("cfn-lint")
    answer = subprocess.run([lint, template.PATH, translation], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout


def test_permissions_name_actions_and_resources() -> None:
    for name, statement in statements():
        actions = as_list(statement["Action"])
        assert not [each for each in actions if "*" in each], name
        for resource in as_list(statement["Resource"]):
            if resource == "*":
                assert actions == ["dynamodb:ListStreams"], name  # AWS knows no resource for it
            elif isinstance(resource, str):
                pytest.fail(f"{name}: {resource} is nobody's")


def test_every_function_has_a_role_of_its_own() -> None:
    functions = of_type("AWS::Lambda::Function")
    roles = [referred(each["Role"]) for each in functions.values()]
    assert all(len(each) == 1 for each in roles)
    assert len(set().union(*roles)) == len(functions)


def test_only_types_that_cost_nothing_while_idle_are_made() -> None:
    assert {each["Type"] for each in resources().values()} <= COSTS_NOTHING_IDLE
    assert of_type("AWS::DynamoDB::Table")["Table"]["BillingMode"] == "PAY_PER_REQUEST"
    functions = of_type("AWS::Lambda::Function").values()
    assert not any("ProvisionedConcurrencyConfig" in each for each in functions)
    metrics = 0
    for alarm in of_type("AWS::CloudWatch::Alarm").values():
        metrics += sum("MetricStat" in each for each in alarm["Metrics"]) if "Metrics" in alarm else 1
    assert metrics <= ALARMS_FREE


def test_functions_are_given_settings_that_there_are_and_handlers_that_can_be_imported() -> None:
    for name, function in of_type("AWS::Lambda::Function").items():
        given = function["Environment"]["Variables"]
        assert {each.removeprefix("THREADLINE_").lower() for each in given} <= set(Settings.__struct_fields__), name
        module, _, handler = function["Handler"].rpartition(".")
        assert callable(getattr(importlib.import_module(module), handler)), name


def test_every_queue_has_dead_letters_and_these_an_alarm() -> None:
    queues = of_type("AWS::SQS::Queue")
    redriven = {name: referred(each["RedrivePolicy"]) for name, each in queues.items() if "RedrivePolicy" in each}
    last = set(queues) - set(redriven)
    assert set().union(*redriven.values()) <= last
    watched = {
        queue
        for alarm in of_type("AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
        for queue in referred(alarm["Dimensions"])
    }
    assert watched == last


def test_everything_that_calls_a_function_by_itself_says_where_failures_go() -> None:
    for name, mapping in of_type("AWS::Lambda::EventSourceMapping").items():
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"], name
        stream = "DestinationConfig" in mapping
        assert stream or referred(mapping["EventSourceArn"]) == {"IngestionQueue"}, name
    failures = {
        next(iter(referred(each["FunctionName"]))): referred(each["DestinationConfig"]["OnFailure"]["Destination"])
        for each in of_type("AWS::Lambda::EventInvokeConfig").values()
    }
    senders = {name for name, each in statements() if each["Action"] == "sqs:SendMessage"}
    for name, schedule in of_type("AWS::Scheduler::Schedule").items():
        assert referred(schedule["Target"]["DeadLetterConfig"]["Arn"]) == {"FailedInvocations"}, name
        # Scheduler only hands over: what fails in the function is the function's to report.
        [function] = referred(schedule["Target"]["Arn"])
        assert failures[function] == {"FailedInvocations"}, function
        assert referred(of_type("AWS::Lambda::Function")[function]["Role"]) <= senders, function


def test_a_message_stays_hidden_for_six_times_as_long_as_its_function_may_run() -> None:
    ingest = of_type("AWS::Lambda::Function")["IngestFunction"]
    assert of_type("AWS::SQS::Queue")["IngestionQueue"]["VisibilityTimeout"] >= 6 * ingest["Timeout"]


def test_every_alarm_reports_and_has_its_line_in_the_runbook() -> None:
    alarms = of_type("AWS::CloudWatch::Alarm")
    assert all(referred(each["AlarmActions"]) == {"AlarmTopic"} for each in alarms.values())
    page = (ROOT / "docs/runbook.md").read_text()
    assert re.findall(r"^## ([A-Z]\w+)$", page, re.MULTILINE) == list(alarms)


def test_personal_data_survives_the_stack_and_is_encrypted_and_closed() -> None:
    for name in ("Table", "LakeBucket"):
        assert resources()[name]["DeletionPolicy"] == resources()[name]["UpdateReplacePolicy"] == "Retain"
    assert all(each["SqsManagedSseEnabled"] for each in of_type("AWS::SQS::Queue").values())
    assert all(of_type("AWS::S3::Bucket")["LakeBucket"]["PublicAccessBlockConfiguration"].values())
    assert "VersioningConfiguration" not in of_type("AWS::S3::Bucket")["LakeBucket"]  # an erasure would leave copies


def _refused_by(folder: str, path: Path) -> set[str]:
    """The rules of one service that refuse the template."""
    machine = "aarch64" if platform.machine() in ("aarch64", "arm64") else "x86_64"
    program = GUARD / "bin" / ("macos" if sys.platform == "darwin" else "ubuntu") / machine / "cfn-guard"
    program.chmod(0o755)
    rules = sorted((GUARD / "rules/control-tower/cfn-guard" / folder).glob("*.guard"))
    assert rules, folder
    command = [str(program), "validate", "--data", str(path), "--output-format", "json", "--structured"]
    command += ["--show-summary", "none"]
    for each in rules:
        command += ["--rules", str(each)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})
    assert answer.returncode in (0, 19), answer.stderr
    return {rule["Rule"]["name"] for report in json.loads(answer.stdout) for rule in report["not_compliant"]}


def test_aws_control_tower_refuses_only_what_the_page_gives_a_reason_for(tmp_path: Path) -> None:
    if not GUARD.exists():
        pytest.skip(f"no cfn-guard here: npm ci --ignore-scripts in {GUARD.parents[2]}")
    path = tmp_path / "translated.json"
    path.write_text(json.dumps(template.translated()))
    refused = set().union(*(_refused_by(each, path) for each in SERVICES))
    excused = set(re.findall(r"^\| `(\w+_check)`", (ROOT / "docs/aws.md").read_text(), re.MULTILINE))
    assert refused == excused
