"""A second opinion: the store laws on DynamoDB Local, AWS's own engine, which must agree with them in everything.

What it is known to do otherwise than DynamoDB itself, and why that touches no law:

- It knows no point-in-time recovery; `migrate` leaves that step out where a server has no such operation.
- It counts one unit for a write and two for a transaction, however large; `bench/cases/dynamodb.py` reckons by size.
- It neither throttles nor delays; `tests/stores/test_dynamodb_chaos.py` does.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.servers.dynamodb import LOCAL_SWITCH, dynamodb_local, local_is_wanted
from threadline.kernel.store import Store
from threadline.testing.store_laws import StoreLaws

if local_is_wanted():

    class TestDynamoStoreOnAwsOwnEngine(StoreLaws):
        durable = True

        def open(self, folder: Path) -> Store:
            return dynamodb_local().open(folder)

else:

    @pytest.mark.skip(reason=f"{LOCAL_SWITCH}=0 leaves DynamoDB Local out")
    def test_the_second_opinion_is_left_out() -> None:
        pass
