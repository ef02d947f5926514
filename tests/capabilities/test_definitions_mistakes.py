"""Mistakes in definitions: those of all files and sections in one message, and none that only follow from others."""

from __future__ import annotations

from pathlib import Path

import pytest

from threadline.app import catalogue
from threadline.kernel.errors import InvalidDefinition

MISTAKES = {
    "calendar": "calendar: {week_start: 9}",
    "campaigns": "campaigns: {ignored_after: soon}",
    "consent": "consent: {topics: {letter: {default: maybe}}}",
    "currencies": "currencies: {base: EUR, rates: {USD: -1}}",
    "destinations": "destinations: {crm: {url: ftp://crm.example.com}}",
    "event_schemas": "event_schemas: {paid: {type: objekt}}",
    "feature_updates": "feature_updates: {active_within: 1h}",
    "features": "features: {wrong_count: {aggregate: cuont, events: click}}",
    "feedback": "feedback: {topics: [arn:aws:sns:x]}",
    "identifiers": "identifiers: {customer_no: {priority: high}}",
    "interests": "interests: {modus: 3}",
    "journeys": "journeys: {welcome: {trigger: {event: signed_up}, steps: [{wiat: 1d}]}}",
    "leaderboards": "leaderboards: {top: {score: features.nothing_of_the_kind}}",
    "mail": "mail: {caps: [{mails: 0, per: 7d}]}",
    "memory": "memory: {shoe: {sauce: x}}",
    "points": "points: {events_per_hour: 0}",
    "retention": "retention: {names: {types: [identify], days: 30}}",
    "rule_sets": """rule_sets: {shop: {events: [paid], rules: [refnd]}}
rules: {refund: {conditions: {field: tags, exists: true}}}""",
    "rules": "rules: {score: {conditions: {field: features.monetary_totl, exists: true}}}",
    "segments": "segments: {big: {when: {field: features.order_cuont, exists: true}}}",
    "streaks": "streaks: {run: {cadence: dayly}}",
    "timezone": "timezone: Mars/Olympus",
}
"""Section -> a file with one mistake in it."""


def problems(folder: Path, texts: dict[str, str]) -> set[str]:
    """What is wrong with these files, without the folder."""
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text + "\n")
    with pytest.raises(InvalidDefinition) as raised:
        catalogue([folder])
    return set(str(raised.value).replace(f"{folder}/", "").splitlines())


@pytest.mark.slow
def test_mistakes_of_all_sections_are_those_of_each_alone(tmp_path: Path) -> None:
    assert MISTAKES.keys() | {"settings"} == {section.name for section in catalogue().sections}
    alone = {name: problems(tmp_path / name, {name: text}) for name, text in MISTAKES.items()}
    assert all(line.startswith(f"{name}.yaml:1: ") for name, lines in alone.items() for line in lines), alone
    broken = {"zz": "segments: ["}
    alone |= {"zz": problems(tmp_path / "zz", broken)}
    assert problems(tmp_path / "all", MISTAKES | broken) == set().union(*alone.values())


def test_what_builds_on_something_wrong_is_not_wrong_because_of_it(tmp_path: Path) -> None:
    texts = {
        "features": MISTAKES["features"],
        "others": """
features: {per_day: {aggregate: ratio, numerator: wrong_count, denominator: wrong_count}}
segments: {clickers: {when: {field: features.wrong_count, greater_than: 3}}}
leaderboards: {clickers: {score: features.wrong_count}}
rules: {many: {conditions: {field: features.per_day, greater_than: 3}}}
""",
    }
    assert {line.partition(":")[0] for line in problems(tmp_path / "all", texts)} == {"features.yaml"}


def test_a_file_that_cannot_be_read_hides_no_mistake_of_another(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / "a.yaml").write_bytes(b"\xff\xfe")
    (folder / "b.yaml").write_text(MISTAKES["features"])
    with pytest.raises(InvalidDefinition) as raised:
        catalogue([folder])
    assert [line.partition(": ")[0] for line in str(raised.value).splitlines()] == [
        f"{folder}/a.yaml:1",
        f"{folder}/b.yaml:1",
    ]
