"""Law: workspaces see nothing of each other, though the same people, keys and tags are in both."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given

from tests.laws import staging
from threadline.capabilities.profile.people.tags import tagged, tags_in_use
from threadline.kernel.errors import InvalidValue, ThreadlineError
from threadline.kernel.event import Event
from threadline.kernel.store import scan_pages
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios

WORKSPACES = ("one", "two", "one two", "on")
"""Some are beginnings of others: a key put together carelessly would mix them up."""


def in_workspace(told: Event, workspace: str) -> Event:
    return msgspec.structs.replace(told, workspace=workspace)


@given(scenarios.histories(people=2), scenarios.randoms)
def test_each_is_as_if_it_were_alone(history: list[Event], random: Random) -> None:
    everything = [in_workspace(told, random.choice(WORKSPACES)) for told in history for _ in range(2)]
    together = staging.tell(MemoryStore(), scenarios.telling(scenarios.shuffled, random, everything))
    lines: list[str] = []
    for workspace in WORKSPACES:
        alone = staging.tell(MemoryStore(), [[told for told in everything if told.workspace == workspace]])
        assert staging.pictures(together, (workspace,)) == staging.pictures(alone, (workspace,))
        lines += staging.timeless(alone)
    assert staging.timeless(together) == sorted(lines)


def test_no_way_in_leads_into_another(seed: int) -> None:
    history = [in_workspace(told, "one") for told in scenarios.history(Random(seed), 3, 60)]
    on = staging.tell(MemoryStore(), [history])
    person = next(on.reader.all_people("one"))
    told = on.reader.events(person)[0]
    tries = [
        lambda: on.reader.person("two", person.id),
        lambda: on.reader.person("two", str(next(iter(person.identifiers.values())))),
        lambda: on.log.event("two", told.id),
        lambda: on.identity.merge("two", person.id, "user_id:user-1", request="m"),
        lambda: on.identity.split("two", person.id, [str(next(iter(person.identifiers.values())))], request="s"),
        lambda: on.identity.unmerge("two", told.id, request="u"),
        lambda: on.identity.review("two", "x", join=True),
    ]
    for attempt in tries:
        with pytest.raises(ThreadlineError) as caught:
            attempt()
        assert caught.value.code == "not_found"
    assert list(on.reader.all_people("two")) == []
    assert on.log.of_key("two", told.event.source, told.event.key) is None
    assert (on.rejected.page("two", limit=10), on.identity.quarantined("two")) == ([], [])


def test_rows_of_a_tag_are_of_one_workspace() -> None:
    on = staging.engine()
    told = [
        staging.event("tag_added", {"user_id": "u"}, "k", workspace=workspace, properties={"tag": "one/vip"})
        for workspace in WORKSPACES
    ]
    assert set(staging.statuses(on.recorder.record(told))) == {"accepted"}
    assert sorted(row.key.partition for row in scan_pages(on.store, "tag")) == sorted(WORKSPACES)
    assert [list(tags_in_use(on.store, workspace, 10)) for workspace in WORKSPACES] == [["one/vip"]] * len(WORKSPACES)
    assert [len(tagged(on.store, workspace, "one/vip", "", 10)) for workspace in WORKSPACES] == [1] * len(WORKSPACES)


@pytest.mark.parametrize("workspace", ["", "one/two", "w" * 101, "\ud800", "one\x00", "one\n"])
def test_what_could_reach_into_another_cannot_name_a_workspace(workspace: str) -> None:
    on = staging.engine()
    told = [
        staging.event("page", {"user_id": "u"}, "1"),
        staging.event("page", {"user_id": "u"}, "2", workspace=workspace),
    ]
    with pytest.raises(InvalidValue):
        on.recorder.record(told)
    assert on.log.feed() == []
