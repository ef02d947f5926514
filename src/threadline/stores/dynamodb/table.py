"""The table itself: made and brought up to date, one idempotent step after the other."""

from __future__ import annotations

import time
from contextlib import suppress

from threadline.kernel.errors import InvalidSetting, Unavailable
from threadline.stores.dynamodb.client import Body, Client, Gone, Refused
from threadline.stores.dynamodb.layout import EXPIRES, PK, SK

ACTIVE_SECONDS_MAX = 300.0
_POLL_SECONDS_FIRST, _POLL_SECONDS_MAX = 0.02, 5.0


def check_table(client: Client) -> None:
    """Raise `InvalidSetting` if the table is not there or is somebody else's."""
    table = _describe(client)
    if table is None:
        hint = "make it with: threadline migrate"
        raise InvalidSetting(f"store: there is no table {client.address.table} in {client.region}", hint=hint)
    _refuse_foreign(client, table)


def migrate_table(client: Client) -> list[str]:
    """Take the steps that are missing; returns them in words."""
    name = client.address.table
    done = []
    table = _describe(client)
    if table is None:
        with suppress(Refused):  # then another process makes it at this moment
            client.call("CreateTable", _creation(name))
            done.append(f"created {name}")
    table = _active(client)
    _refuse_foreign(client, table)
    for words, change in _changes(table):
        client.call("UpdateTable", {"TableName": name, **change})
        table = _active(client)
        done.append(words)
    return done + _expiry(client, name) + _recovery(client, name)


def _expiry(client: Client, name: str) -> list[str]:
    state = client.call("DescribeTimeToLive", {"TableName": name})["TimeToLiveDescription"]["TimeToLiveStatus"]
    if state != "DISABLED":
        return []
    expiry = {"Enabled": True, "AttributeName": EXPIRES}
    client.call("UpdateTimeToLive", {"TableName": name, "TimeToLiveSpecification": expiry})
    return ["switched expiry on"]


def _recovery(client: Client, name: str) -> list[str]:
    try:
        backups = client.call("DescribeContinuousBackups", {"TableName": name})["ContinuousBackupsDescription"]
    except Gone:
        return []  # DynamoDB Local keeps everything in memory, and knows of no backups
    if backups.get("PointInTimeRecoveryDescription", {}).get("PointInTimeRecoveryStatus") == "ENABLED":
        return []
    recovery = {"PointInTimeRecoveryEnabled": True}
    client.call("UpdateContinuousBackups", {"TableName": name, "PointInTimeRecoverySpecification": recovery})
    return ["switched point-in-time recovery on"]


def _creation(name: str) -> Body:
    return {
        "TableName": name,
        "KeySchema": [{"AttributeName": PK, "KeyType": "HASH"}, {"AttributeName": SK, "KeyType": "RANGE"}],
        "AttributeDefinitions": [{"AttributeName": part, "AttributeType": "S"} for part in (PK, SK)],
        "BillingMode": "PAY_PER_REQUEST",
        "StreamSpecification": _STREAM,
        "DeletionProtectionEnabled": True,
    }


_STREAM = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}


def _changes(table: Body) -> list[tuple[str, Body]]:
    """What a table that is there still lacks: words for it, and the request. DynamoDB takes one change at a time."""
    changes: list[tuple[str, Body]] = []
    if (table.get("BillingModeSummary") or {}).get("BillingMode") != "PAY_PER_REQUEST":
        changes.append(("switched to on-demand", {"BillingMode": "PAY_PER_REQUEST"}))
    if not (table.get("StreamSpecification") or {}).get("StreamEnabled"):
        changes.append(("switched the stream on", {"StreamSpecification": _STREAM}))
    if not table.get("DeletionProtectionEnabled"):
        changes.append(("switched deletion protection on", {"DeletionProtectionEnabled": True}))
    return changes


def _describe(client: Client) -> Body | None:
    try:
        table: Body = client.call("DescribeTable", {"TableName": client.address.table})["Table"]
    except Gone:
        return None
    return table


def _active(client: Client) -> Body:
    deadline, pause = time.monotonic() + ACTIVE_SECONDS_MAX, _POLL_SECONDS_FIRST
    while True:
        table = _describe(client)
        if table is not None and table["TableStatus"] == "ACTIVE":
            return table
        if time.monotonic() > deadline:
            raise Unavailable(f"the table {client.address.table} is not active after {ACTIVE_SECONDS_MAX:g} s")
        time.sleep(pause)
        pause = min(2 * pause, _POLL_SECONDS_MAX)


def _refuse_foreign(client: Client, table: Body) -> None:
    keys = [(attribute["AttributeName"], attribute["KeyType"]) for attribute in table["KeySchema"]]
    kinds = {attribute["AttributeName"]: attribute["AttributeType"] for attribute in table["AttributeDefinitions"]}
    if keys != [(PK, "HASH"), (SK, "RANGE")] or kinds != {PK: "S", SK: "S"}:
        raise InvalidSetting(f"store: the table {client.address.table} belongs to something else: its keys are {keys}")
