"""Law: who names the position that was read is recorded there or not at all."""

from __future__ import annotations

import threading

import pytest

from tests.laws import staging
from tests.laws.staging import event
from threadline.stores.memory import MemoryStore

WHO = {"user_id": "u"}


def test_the_position_read_is_the_position_written() -> None:
    on = staging.engine()
    assert staging.statuses(on.recorder.record([event("page", WHO, "1")], expected=0)) == ["accepted"]
    assert staging.statuses(on.recorder.record([event("page", WHO, "2")], expected=1)) == ["accepted"]
    before = staging.whole(on)
    for wrong in (0, 1, 3):
        assert staging.statuses(on.recorder.record([event("page", WHO, f"w{wrong}")], expected=wrong)) == [
            "position_conflict"
        ]
    assert staging.whole(on) == before
    assert staging.statuses(on.recorder.record([event("page", WHO, "2")], expected=0)) == ["duplicate"]


@pytest.mark.parametrize(
    "who", [{"user_id": "new"}, {"user_id": "u", "anonymous_id": "new"}, {"user_id": "u", "anonymous_id": "a"}]
)
def test_a_conflict_creates_links_and_joins_nobody(who: dict[str, str]) -> None:
    on = staging.tell(MemoryStore(), [[event("page", WHO, "1"), event("page", {"anonymous_id": "a"}, "2")]])
    before = staging.whole(on)
    told = event("page", who, "3")
    assert staging.statuses(on.recorder.record([told, told], expected=9)) == ["position_conflict", "position_conflict"]
    assert staging.whole(on) == before
    assert staging.statuses(on.recorder.record([told])) == ["accepted"]


def test_a_joined_person_is_at_the_sum() -> None:
    on = staging.tell(MemoryStore(), [[event("page", WHO, "1"), event("page", {"anonymous_id": "a"}, "2")]])
    joining = event("identify", {"user_id": "u", "anonymous_id": "a"}, "3")
    # Two events, and the one that tells of the join.
    assert staging.statuses(on.recorder.record([joining], expected=3)) == ["accepted"]


def test_it_is_the_position_in_the_store_whatever_a_process_remembers() -> None:
    store = MemoryStore()
    one, other = staging.engine(store), staging.engine(store)
    one.recorder.record([event("page", WHO, "1")])
    other.recorder.record([event("page", WHO, "2")])
    read = one.reader.person("default", "user_id:u").position
    assert staging.statuses(one.recorder.record([event("page", WHO, "3")], expected=read)) == ["accepted"]
    assert one.rejected.page("default") == []


def test_of_many_who_read_the_same_one_writes() -> None:
    store = MemoryStore()
    engines = [staging.engine(store) for _ in range(2)]
    for attempt in range(20):
        read = attempt
        barrier, answers = threading.Barrier(4), []

        def work(n: int, read: int = read, barrier: threading.Barrier = barrier, answers: list[str] = answers) -> None:
            barrier.wait()
            answers += staging.statuses(
                engines[n % 2].recorder.record([event("page", WHO, f"{read}-{n}")], expected=read)
            )

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(answers) == ["accepted", *["position_conflict"] * 3]
    assert engines[0].reader.person("default", "user_id:u").position == 20
    staging.assert_log_is_whole(engines[0])
