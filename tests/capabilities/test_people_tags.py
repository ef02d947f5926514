"""Who has which tag, and which tags are in use, against a plain set; and what a tag costs in rows."""

from __future__ import annotations

from random import Random

import pytest

from tests.laws import staging
from threadline.capabilities.profile.people.tags import tagged, tags_in_use
from threadline.kernel.limits import IDENTIFIER_LENGTH_MAX
from threadline.kernel.store import scan_pages
from threadline.testing.scenarios import NOW

HOSTILE = ("a", "a\nb", "a\v", "a\v1b", "a\v1", "\n", "\v", "a\n", "a b", "a/b", "A", "ä", "\ud800", "😀", "a\tb")
"""Some would be a part of another's range if a key were put together carelessly."""
LONGEST = "x" * IDENTIFIER_LENGTH_MAX
TOO_LONG_AS_A_KEY = "\n" * IDENTIFIER_LENGTH_MAX


def who(number: int) -> dict[str, str]:
    return {"user_id": f"u{number}"}


def test_people_and_names_of_tags_drawn_are_those_of_a_plain_set(seed: int) -> None:
    random = Random(seed)
    tags = [tag for tag in (*HOSTILE, LONGEST) if "\ud800" not in tag]
    expected: set[tuple[str, int]] = set()
    changes = []
    for number in range(400):
        tag, person = random.choice(tags), random.randrange(12)
        is_added = random.random() < 0.7
        (expected.add if is_added else expected.discard)((tag, person))
        type = "tag_added" if is_added else "tag_removed"
        changes.append(staging.event(type, who(person), f"k{number}", NOW - 1_000 + number, properties={"tag": tag}))
    on = staging.engine()
    for change in changes:
        assert staging.statuses(on.recorder.record([change])) == ["accepted"]
    ids = {on.reader.person("default", f"user_id:u{number}").id: number for number in range(12)}
    for tag in tags:
        people, after, most = [], "", random.randint(1, 4)
        while page := tagged(on.store, "default", tag, after, most):
            people += page
            after = page[-1]
        assert people == sorted(people)
        assert sorted(ids[person] for person in people) == sorted(number for name, number in expected if name == tag)
    assert set(tags_in_use(on.store, "default", 100)) == {name for name, _ in expected}
    assert len(list(tags_in_use(on.store, "default", 3))) == min(3, len({name for name, _ in expected}))
    staging.assert_refold_changes_nothing(on)


def test_a_tag_too_long_as_a_key_is_no_tag() -> None:
    on = staging.engine()
    told = staging.event("tag_added", who(1), "k", properties={"tag": TOO_LONG_AS_A_KEY})
    assert len(on.recorder.record([told])) == 1
    assert list(tags_in_use(on.store, "default", 10)) == []


@pytest.mark.parametrize("more", [1, 7])
def test_a_tag_of_a_person_costs_one_row_of_all_tables(more: int) -> None:
    on = staging.engine()
    tables = {
        table
        for projection in on.catalogue.projections
        for table in (projection.index.tables if projection.index else ())
    }

    def rows() -> int:
        return sum(1 for table in tables for _ in scan_pages(on.store, table))

    on.recorder.record([staging.event("tag_added", who(1), "first", properties={"tag": "first"})])
    before = rows()
    for number in range(more):
        on.recorder.record(
            [staging.event("tag_added", who(1), f"{number}", number, properties={"tag": f"tag {number}"})]
        )
    assert rows() - before == more
