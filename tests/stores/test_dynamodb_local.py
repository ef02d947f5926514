"""A second opinion: the store laws on DynamoDB Local, AWS's own engine, which must agree with them in everything.

What it is known to do otherwise than DynamoDB itself, and why that touches no law:

- It knows no point-in-time recovery; `migrate` leaves that step out where a server has no such operation.
- It counts one unit for a write and two for a transaction, however large; `bench/cases/dynamodb.py` computes by size.
- It neither throttles nor delays; `tests/stores/test_dynamodb_chaos.py` does.

It takes a processor two minutes for all laws, which the emulator is asked as well: a run asks it those that its seed
draws, torture all of them.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings

from tests.repeating import seed
from tests.servers.dynamodb import LOCAL_SWITCH, dynamodb_local, local_is_wanted
from tests.stores.test_dynamodb_frames import STEPS, assert_nobody_notices
from threadline.kernel.store import Key, Store
from threadline.testing.store_laws import StoreLaws
from threadline.testing.store_scripts import SCRIPTS, assert_the_same_as_in_memory

if local_is_wanted():

    class TestDynamoStoreOnAwsOwnEngine(StoreLaws):
        durable = True

        def open(self, folder: Path) -> Store:
            return dynamodb_local().open(folder)

        @settings(max_examples=6)
        @given(SCRIPTS)
        def test_a_script_means_the_same_as_to_the_memory_store(self, script: list[tuple[Any, ...]]) -> None:
            # Fewer than on the emulator: what is asked of the two is the same.
            with tempfile.TemporaryDirectory() as folder:
                assert_the_same_as_in_memory(self.open(Path(folder)), script)

        @settings(max_examples=6)
        @given(STEPS)
        def test_whatever_happens_to_frames_the_store_says_the_same(
            self, steps: list[tuple[str, int, Key, int]]
        ) -> None:
            with tempfile.TemporaryDirectory() as folder:
                assert_nobody_notices(dynamodb_local().url(folder), steps)

    LAWS = sorted(name for name in dir(StoreLaws) if name.startswith("test_"))
    if os.environ.get("THREADLINE_TEST_PROFILE") != "torture":
        for name in Random(f"{seed()} laws").sample(LAWS, len(LAWS) * 3 // 4):
            setattr(TestDynamoStoreOnAwsOwnEngine, name, None)

else:

    @pytest.mark.skip(reason=f"{LOCAL_SWITCH}=0 leaves DynamoDB Local out")
    def test_the_second_opinion_is_left_out() -> None:
        pass
