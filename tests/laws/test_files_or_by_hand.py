"""Where a definition lives changes nothing: from files, from the store, or from both, the catalogue is the same."""

from __future__ import annotations

from functools import cache

import yaml
from hypothesis import given
from hypothesis import strategies as st

from release.tour import shop
from tests.by_hand_stage import FILE, made_of
from threadline.app import catalogue_of
from threadline.capabilities.decide.drafts.sections import by_hand_of, entries_of, keys_of, names_of
from threadline.capabilities.foundation.definitions.splicing import removed, spliced
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.maintenance.applying import fingerprint


@cache
def whole() -> dict[str, object]:
    """What the shop of the tour declares."""
    declared: dict[str, object] = yaml.safe_load(shop.DEFINITIONS.read_text())
    return {**declared, "features": {"orders": {"aggregate": "count", "events": "purchase_completed"}}}


@cache
def shipped() -> Catalogue:
    return made_of("")


@cache
def entries() -> tuple[tuple[str, str, str], ...]:
    """(section, name, text) of every definition that may be made by hand."""
    named, by_hand = names_of(shipped()), by_hand_of(shipped())
    return tuple(
        (section, name, yaml_of(value).removesuffix("...\n"))
        for (section, name), value in entries_of(whole(), named)
        if section in by_hand
    )


@cache
def expected() -> tuple[str, str]:
    made = made_of(yaml_of(whole()))
    return fingerprint(made), _seen(made)


def _seen(made: Catalogue) -> str:
    """What of a catalogue does not stand in its fingerprint."""
    return repr((made.layout, sorted(policy.name for policy in made.policies), sorted(made.filled_as.items())))


def test_there_is_something_to_be_shared_out() -> None:
    sections = {section for section, _, _ in entries()}
    assert {
        "segments",
        "journeys",
        "features",
        "leaderboards",
        "mail.templates",
        "consent.topics",
        "points",
    } <= sections


@given(st.data())
def test_a_catalogue_is_the_same_wherever_each_definition_lives(data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.sampled_from(entries())) | st.just(set(entries())))
    order = data.draw(st.permutations(sorted(chosen)))
    files, by_hand = yaml_of(whole()), ""
    for section, name, text in order:
        keys = keys_of(shipped(), section, name)
        rest = removed(files, keys)
        more = spliced(by_hand, keys, text)
        assert rest is not None
        assert more is not None
        files, by_hand = rest, more
    mixed = made_of(files, by_hand)
    assert (fingerprint(mixed), _seen(mixed)) == expected()
    exported = catalogue_of([(FILE, files), ("made-by-hand.yaml", by_hand)])
    assert (fingerprint(exported), _seen(exported)) == expected()


def test_a_text_in_which_everything_was_put_is_empty_once_everything_is_taken_out() -> None:
    text = ""
    for section, name, body in entries():
        text = spliced(text, keys_of(shipped(), section, name), body) or ""
    for section, name, _ in entries():
        text = removed(text, keys_of(shipped(), section, name)) or ""
    assert text == ""
