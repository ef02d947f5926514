"""A second opinion: the store laws on DynamoDB Local, AWS's own engine, which must agree with them in everything.

What it is known to do otherwise than DynamoDB itself, and why that touches no law:

- It knows no point-in-time recovery; `migrate` leaves that step out where a server has no such operation.
- It neither throttles nor delays; `tests/stores/test_dynamodb_chaos.py` does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from bench.cases.dynamodb import Reckoning
from tests.servers.dynamodb import LOCAL_SWITCH, dynamodb_local, local_is_wanted
from threadline.kernel.store import Batch, Key, Put, Store
from threadline.kernel.time import DAY, system_clock
from threadline.stores.dynamodb import DynamoStore, migrate
from threadline.stores.dynamodb_address import parse
from threadline.testing.store_cases import entry
from threadline.testing.store_laws import StoreLaws

if local_is_wanted():

    class TestDynamoStoreOnAwsOwnEngine(StoreLaws):
        durable = True

        def open(self, folder: Path) -> Store:
            return dynamodb_local().open(folder)

    def test_units_are_what_awss_engine_says() -> None:
        with tempfile.TemporaryDirectory() as folder:
            url = dynamodb_local().url(folder)
            migrate(url)
            client = Reckoning(parse(url))
            store = DynamoStore(url, system_clock, client=client)
            for number in range(1, 12):
                body = bytes(range(256)) * number
                events = [entry(2 * number, at=number * DAY * 9, body=body), entry(2 * number + 1, body=body)]
                puts = [Put(Key("t", f"é{number}"), body[: 400 * number], 0)]
                assert store.commit([Batch(events, puts)]) == [None]
            store.close()
        assert len(client.checked) == 11
        assert [told for _, told in client.checked] == [ours for ours, _ in client.checked]

else:

    @pytest.mark.skip(reason=f"{LOCAL_SWITCH}=0 leaves DynamoDB Local out")
    def test_the_second_opinion_is_left_out() -> None:
        pass
