"""Values of people that are kept beside the store: after whatever happens they are those that everybody would show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.exports.curated_stage import DEFINITIONS, engine, happenings
from tests.laws import staging
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.reading.values_anew import ValuesAnew
from threadline.exports.values import stored as storing
from threadline.exports.values.stored import StoredValues
from threadline.kernel.errors import BeingErased, Conflict, InvalidValue, NotFound
from threadline.kernel.store import Store
from threadline.kernel.time import DAY, HOUR
from threadline.stores.memory import MemoryStore

NAMES = ("select", "order", "group", "monetary_total", "recency_days", "visits_30d")


def ask(on: Engine, name: str, now: int, operation: str = "features_top", **params: Any) -> Any:
    """The answer of an operation about a feature."""
    declared = next(item for item in on.catalogue.operations if item.name == operation)
    return declared.run(Context(on, "default", now), declared.params(name=name, **params))


@contextmanager
def looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The people who are looked at meanwhile."""
    from threadline.capabilities.profile.features.operations import vector

    seen: list[str] = []
    vector_of = vector.vector_of

    def noted(context: Any, person: Any, *given: Any) -> Any:
        seen.append(person.id)
        return vector_of(context, person, *given)

    with monkeypatch.context() as patched:
        patched.setattr(vector, "vector_of", noted)
        yield seen


def numbers(on: Engine) -> list[str]:
    """The names of features here that are there."""
    return [name for name in NAMES if name in on.catalogue.of_nobody("features", staging.NOW)]


CHANGES = st.lists(
    st.sampled_from(["record", "merge", "merge", "split", "erase", "seal", "ask", "later", "define", "reopen"]),
    min_size=3,
    max_size=12,
)


@given(seed=st.integers(0, 1_000_000), changes=CHANGES, in_a_file=st.booleans())
def test_after_any_changes_kept_values_are_those_of_everybody_looked_at_anew(
    seed: int, changes: list[str], in_a_file: bool
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "values") if in_a_file else None
        random, store, now = Random(seed), MemoryStore(), staging.NOW
        on, more = engine(store), ""
        on.recorder.record(happenings(random, 15))
        values = [StoredValues(on, path) for _ in range(2)]
        for number, change in enumerate(["ask", *changes, "ask", "later", "ask"]):
            user, other = (f"user_id:u{random.randrange(5)}" for _ in range(2))
            with suppress(NotFound, InvalidValue, Conflict, BeingErased):
                if change == "record":
                    on.recorder.record(happenings(random, 6))
                elif change == "merge":
                    on.identity.merge("default", user, other, request=f"{number}", force=True)
                elif change == "split":
                    on.identity.split("default", user, [other], request=f"{number}")
                elif change == "seal":
                    on.erasures.begin("default", user)
                elif change == "erase":
                    on.erasures.run("default", on.erasures.begin("default", user).id)
                elif change == "define":
                    more = "" if more else "  visits_30d: {aggregate: count, events: product_viewed, window: 30d}\n"
            if change == "later":
                now += random.choice([1, HOUR, DAY, 29 * DAY])
            if change in ("define", "reopen"):
                on = engine(store, DEFINITIONS + more)
                for kept in values:
                    kept.close()
                values = [StoredValues(on, path) for _ in range(2)]
            if change == "ask":
                for name in numbers(on):
                    on.people_values = random.choice(values)
                    answers = [ask(on, name, now, limit=1_000), ask(on, name, now, "features_spread")]
                    on.people_values = ValuesAnew(on.reader)
                    assert answers == [ask(on, name, now, limit=1_000), ask(on, name, now, "features_spread")]
        for kept in values:
            kept.close()


def filled(path: Path | None = None, store: Store | None = None) -> Engine:
    """An engine with kept values, and the events of some people."""
    on = engine(store or MemoryStore())
    on.recorder.record(happenings(Random(1), 60, workspaces=("default",)))
    on.people_values = StoredValues(on, path)
    return on


def test_a_second_question_looks_at_those_alone_of_whom_something_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    on = filled()
    with looks(monkeypatch) as seen:
        first = ask(on, "monetary_total", staging.NOW)
        assert len(seen) == first.people_read > 4
        seen.clear()
        assert ask(on, "monetary_total", staging.NOW) == first
        assert seen == []
        bought = staging.event(
            "purchase_completed", {"user_id": "u1"}, "one more", staging.NOW - HOUR, properties={"total": 1_000_000}
        )
        on.recorder.record([bought])
        highest = ask(on, "monetary_total", staging.NOW).top[0]
        assert seen == [highest.person]
        assert "user_id:u1" in highest.identifiers


def test_time_alone_has_those_looked_at_whose_value_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    on = filled()
    ask(on, "recency_days", staging.NOW)
    ask(on, "monetary_total", staging.NOW)
    with looks(monkeypatch) as seen:
        ask(on, "monetary_total", staging.NOW + 2 * DAY)
        assert seen == []
        ask(on, "recency_days", staging.NOW + 2 * DAY)
        assert seen != []


def test_time_that_is_up_leaves_what_was_seen_for_the_next_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "PAGE", 2)
    on = filled()
    monkeypatch.setattr("threadline.capabilities.foundation.events.sample.Deadline.is_over", True)
    read = []
    for _ in range(10):
        answer = ask(on, "monetary_total", staging.NOW, "features_spread")
        read.append(answer.people_read)
        if answer.exact:
            break
    assert read[0] == 2
    assert read == sorted(read)
    assert answer.exact
    assert answer.people_read == len(list(on.reader.all_people("default")))


@pytest.mark.parametrize("is_first", [True, False], ids=["the first question", "a later one"])
def test_what_another_process_takes_in_while_people_are_read_is_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_first: bool
) -> None:
    on = filled(tmp_path / "values")
    other = StoredValues(on, tmp_path / "values")
    name = "people" if is_first else "people_of"
    if not is_first:
        ask(on, "monetary_total", staging.NOW)

    def buy(key: str, total: int) -> None:
        own, at = {"user_id": "u1"}, staging.NOW - HOUR
        on.recorder.record([staging.event("purchase_completed", own, key, at, properties={"total": total})])

    buy("first", 1_000_000)
    read = getattr(on.reader, name)

    def passed(*given: Any) -> Any:
        people = read(*given)
        monkeypatch.undo()
        buy("second", 2_000_000)
        with other._opened() as db:
            other._take(db)
        return people

    monkeypatch.setattr(on.reader, name, passed)
    highest = ask(on, "monetary_total", staging.NOW).top[0]
    on.people_values = ValuesAnew(on.reader)
    assert ask(on, "monetary_total", staging.NOW).top[0] == highest
    assert highest.value >= 3_000_000
    other.close()


def test_of_an_erased_person_nothing_is_left_in_the_file(tmp_path: Path) -> None:
    on = filled(tmp_path / "values")
    ask(on, "monetary_total", staging.NOW)
    id = on.reader.person("default", "user_id:u1").id
    assert isinstance(on.people_values, StoredValues)
    with on.people_values._opened() as db:
        assert bytes.fromhex(id) in {person for (person,) in db.execute("SELECT person FROM value")}
    on.erasures.run("default", on.erasures.begin("default", "user_id:u1").id)
    on.people_values.catch_up(1)
    on.people_values.close()
    assert all(bytes.fromhex(id) not in file.read_bytes() for file in tmp_path.iterdir())


def test_a_damaged_file_and_one_that_cannot_be_made_are_done_without(tmp_path: Path) -> None:
    on = filled()
    expected = ask(on, "monetary_total", staging.NOW)
    path = tmp_path / "values"
    path.write_bytes(b"SQLite format 3\0" + b"x" * 8_000)
    for file in (path, tmp_path / "no folder" / "values"):
        on.people_values = StoredValues(on, file)
        assert ask(on, "monetary_total", staging.NOW) == expected
    on.people_values = StoredValues(on, path)
    assert ask(on, "monetary_total", staging.NOW) == expected


def test_a_store_that_was_put_back_has_its_own_values(tmp_path: Path) -> None:
    on = filled(tmp_path / "values")
    ask(on, "monetary_total", staging.NOW)
    on.people_values.close()
    other = engine(MemoryStore())
    other.recorder.record(happenings(Random(2), 80, workspaces=("default",)))
    other.people_values = ValuesAnew(other.reader)
    expected = ask(other, "monetary_total", staging.NOW)
    other.people_values = StoredValues(other, tmp_path / "values")
    assert ask(other, "monetary_total", staging.NOW) == expected


def test_an_event_that_lies_ahead_counts_once_it_has_come() -> None:
    on = filled()
    before = ask(on, "monetary_total", staging.NOW).top[0]
    ahead = {"total": 1_000_000, "currency": "EUR"}
    names = {"user_id": "u1"}
    on.recorder.record([staging.event("purchase_completed", names, "ahead", staging.NOW + HOUR, properties=ahead)])
    assert ask(on, "monetary_total", staging.NOW).top[0] == before
    assert ask(on, "monetary_total", staging.NOW + 2 * HOUR).top[0].value >= 1_000_000
