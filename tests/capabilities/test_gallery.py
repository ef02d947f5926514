"""The gallery: each of its files installs whole, says before what it would do, does that, and goes away whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import threadline
from tests.by_hand_stage import FILE, Process
from threadline.capabilities.decide.gallery.entries import Entry, entries, pieces_of
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.foundation.definitions.versions import newest
from threadline.kernel.errors import Conflict, InvalidValue, NotFound
from threadline.kernel.time import DAY, format_time, parse_time
from threadline.stores.memory import MemoryStore
from threadline.surfaces.cli.demo.history import orders
from threadline.testing.rehearsal import ManualClock, Rehearsal

MAIL = """settings: {public_url: "https://shop.example"}
mail:
  senders: {shop: {from: shop@example.com}}
  templates: {letter: {subject: News, text: Hello}}
"""
START = parse_time("2026-01-05T10:00:00Z")
CUSTOMERS = 12
NAMES = [entry.name for entry in entries()]


class Happening(NamedTuple):
    """What somebody does, or what is sent to them."""

    at: int
    who: str
    type: str
    properties: dict[str, Any]


def _at(days: float) -> int:
    return START + round(days * DAY)


def _shop() -> Iterator[Happening]:
    """The orders of the first customers of the demo's shop, at noon, from the day of the first one on."""
    first = min(order.day for order in orders())
    for order in orders():
        if int(order.customer) <= CUSTOMERS:
            at = _at((order.day - first).days + order.number / 1e6)
            yield Happening(at, f"c{order.customer}", "purchase_completed", {"total": order.dollars, "currency": "USD"})


def _events(*given: tuple[float, str, str, dict[str, Any]]) -> list[Happening]:
    return [Happening(_at(days), who, type, properties) for days, who, type, properties in given]


SCENES = {
    "welcome": _events((1, "ada", "signed_up", {}), (1, "bob", "signed_up", {}), (2, "bob", "purchase_completed", {})),
    "abandoned_cart": _events(
        (1, "ada", "Product Added", {"name": "The lamp"}),
        (1.3, "bob", "Product Added", {"name": "The chair"}),
        (1.9, "bob", "purchase_completed", {}),
    ),
    "trial_ending": _events(
        (1, "ada", "identify", {"trial_ends_at": "2026-01-20"}),
        (1, "bob", "identify", {"trial_ends_at": "2026-01-22"}),
        (16, "bob", "subscription_started", {}),
    ),
    "birthday": _events(
        (1, "ada", "identify", {"next_birthday": "2026-02-14"}),
        (60, "ada", "identify", {"next_birthday": "2027-02-14"}),
    ),
    "permission": _events(*((day, "ada", "letter", {}) for day in (1, 8, 15)), (1, "bob", "letter", {})),
    "onboarding": _events(
        (1, "ada", "signed_up", {}),
        (1, "bob", "signed_up", {}),
        (1.5, "bob", "project_created", {}),
        (4, "ada", "project_created", {}),
    ),
    "renewal": _events(
        (1, "ada", "identify", {"renews_at": "2026-03-01"}),
        (1, "bob", "identify", {"renews_at": "2026-03-02"}),
        (50, "bob", "contract_cancelled", {}),
    ),
}
"""What happens for those that go by more than orders; the others look at the demo's shop."""


def _scene(name: str) -> list[Happening]:
    happenings = SCENES.get(name) or [*_shop()]
    people = dict.fromkeys(happening.who for happening in happenings)
    known = [Happening(START, who, "identify", {"email": f"{who}@example.com"}) for who in people]
    return sorted([*known, *happenings], key=lambda happening: happening.at)


def _played(shop: Any, clock: ManualClock, scene: list[Happening]) -> Rehearsal:
    rehearsal = Rehearsal(shop, clock)
    for at, happenings in groupby(scene, key=lambda happening: happening.at):
        rehearsal.advance_to(format_time(max(at, clock.at)))
        for happening in happenings:
            if happening.type == "identify":
                shop.identify(happening.who, happening.properties)
            elif happening.type == "letter":
                shop.mail.send(f"user_id:{happening.who}", template="letter", request=str(at))
            else:
                shop.track(happening.who, happening.type, happening.properties)
    rehearsal.advance("420d" if scene[-1].at > _at(100) else "70d")
    return rehearsal


@pytest.mark.parametrize("name", NAMES)
def test_what_an_entry_would_have_done_is_what_it_does_once_it_is_installed(name: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(MAIL)
    scene, clock = _scene(name), ManualClock(format_time(START))
    with threadline.open("memory:", definitions=tmp_path, clock=clock) as shop:
        _played(shop, clock, scene)
        foreseen = shop.gallery.preview(name, days=3_650, seconds=30)
    process, clock = Process(MemoryStore(), MAIL), ManualClock(format_time(START))
    journey = process.ask("gallery_install", name=name)["journey"]
    (tmp_path / "installed.yaml").write_text(newest(process.store).text)
    with threadline.open("memory:", definitions=tmp_path, clock=clock) as shop:
        sent = [mail for mail in _played(shop, clock, scene).mails if mail.journey == journey]
    assert foreseen.exact
    assert foreseen.entered.people > 0
    assert foreseen.mailed.people == len({mail.person for mail in sent}) > 0
    assert {step.step: step.mails for step in foreseen.steps if step.mails} == Counter(mail.step for mail in sent)
    shown = {(mail.at[:19], mail.template) for person in foreseen.samples for mail in person.mails}
    assert shown <= {(mail.at[:19], mail.template) for mail in sent}


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_is_one_version_by_hand_and_going_back_takes_all_of_it_away(name: str) -> None:
    process = Process(MemoryStore(), MAIL)
    view = process.ask("gallery_show", name=name)
    assert {piece["state"] for piece in view["pieces"]} == {"new"}
    installed = process.ask("gallery_install", name=name)
    assert installed["version"] == 1
    (version,) = process.ask("definitions_versions")["versions"]
    assert {f"{change['section']} {change['name']}" for change in version["changes"]} == set(installed["pieces"])
    assert installed["pieces"] == [f"{piece['section']} {piece['name']}" for piece in view["pieces"]]
    assert process.ask("journeys_show", name=view["journey"])["paused_since"] is None
    process.ask("definitions_go_back", version=0)
    assert (newest(process.store).text, process.ask("journeys_list")["journeys"]) == ("", [])


@pytest.mark.parametrize("entry", entries(), ids=NAMES)
def test_under_a_suffix_nothing_of_an_entry_has_the_name_or_leads_to_what_had_it(entry: Entry) -> None:
    names = {piece.name for piece in pieces_of(entry)}
    process = Process(MemoryStore(), MAIL)
    for suffix in ("", "_2"):
        process.ask("gallery_install", name=entry.name, suffix=suffix)
    renamed = pieces_of(entry, "_2")
    assert {piece.name for piece in renamed} == {f"{name}_2" for name in names}
    words = " ".join(str(value_of(piece.text)) for piece in renamed)
    assert [name for name in names if f"'{name}'" in words or f".{name}'" in words or f".{name} " in words] == []
    # So that the first can go, and the second still stands.
    process.ask("definitions_go_back", version=0)
    process.ask("gallery_install", name=entry.name, suffix="_2")


@pytest.mark.parametrize("entry", entries(), ids=NAMES)
def test_an_entry_says_of_every_event_that_it_waits_for_what_it_is(entry: Entry) -> None:
    process = Process(MemoryStore(), MAIL)
    process.ask("gallery_install", name=entry.name)
    book = process.engine.shared.fresh("default", "journeys")
    (active,) = book.in_force.values()
    waited_for = {type for type in active.journey.types if not type.startswith("segment_")}
    assert waited_for <= entry.needs.keys()


def test_the_mails_of_every_entry_can_be_unsubscribed_from_or_are_transactional() -> None:
    process = Process(MemoryStore(), MAIL)
    for name in NAMES:
        for mail in process.ask("gallery_mails", name=name)["mails"]:
            assert mail["subject"]
            assert "Unsubscribe" in mail["html"] or name == "renewal"


# --- names that are taken, senders, what a store has -----------------------------------------------------


def test_a_name_that_a_file_has_is_said_before_and_refused_with_a_suffix_that_is_free() -> None:
    process = Process(MemoryStore(), f"{MAIL}segments:\n  fifth_order: {{when: {{field: tags, exists: true}}}}\n")
    view = process.ask("gallery_show", name="milestone")
    assert {piece["name"]: (piece["state"], piece["place"]) for piece in view["pieces"]}["fifth_order"] == (
        "taken",
        f"{FILE}:6",
    )
    assert view["suffix"] == "_2"
    with pytest.raises(Conflict, match=f"'fifth_order' is declared at {FILE}:6 already") as raised:
        process.ask("gallery_install", name="milestone")
    assert "suffix '_2'" in str(raised.value.hint)
    assert newest(process.store).number == 0
    assert process.ask("gallery_install", name="milestone", suffix="_2")["journey"] == "milestone_2"


def test_an_entry_that_was_edited_since_is_taken_and_one_that_was_not_makes_no_version() -> None:
    process = Process(MemoryStore(), MAIL)
    for _ in range(2):
        assert process.ask("gallery_install", name="birthday")["version"] == 1
    process.ask(
        "definitions_declare", section="mail.templates", name="birthday_congratulation", text="subject: x\ntext: y"
    )
    with pytest.raises(Conflict, match="'birthday_congratulation' is made by hand already"):
        process.ask("gallery_install", name="birthday")


def test_the_first_sender_is_made_of_an_address_and_of_several_one_has_to_be_named() -> None:
    process = Process(MemoryStore())
    with pytest.raises(InvalidValue, match="no sender is declared yet"):
        process.ask("gallery_install", name="welcome")
    process.ask("gallery_install", name="welcome", sender="hello@shop.example")
    assert value_of(newest(process.store).text)["mail"]["senders"] == {"main": {"from": "hello@shop.example"}}
    with pytest.raises(InvalidValue, match="there are senders already; name one of main"):
        process.ask("gallery_install", name="review", sender="other@shop.example")
    process.ask("definitions_declare", section="mail.senders", name="letters", text="from: letters@shop.example\n")
    with pytest.raises(InvalidValue, match="there are several senders; name one of letters, main"):
        process.ask("gallery_install", name="review")
    process.ask("gallery_install", name="review", sender="letters")
    templates = value_of(newest(process.store).text)["mail"]["templates"]
    assert {template["sender"] for name, template in templates.items() if name.startswith("review")} == {"letters"}


def test_an_entry_that_begins_paused_lets_nobody_enter_before_it_is_resumed() -> None:
    process = Process(MemoryStore(), MAIL)
    assert process.ask("gallery_install", name="welcome", paused=True)["paused"]
    assert process.ask("journeys_show", name="welcome_series")["paused_since"]
    record = {"type": "signed_up", "identifiers": {"user_id": "ada"}, "key": "1"}
    process.ask("record", events=[record])
    assert process.ask("journeys_show", name="welcome_series")["people"] == 0
    process.ask("journeys_resume", name="welcome_series")
    process.ask("record", events=[{**record, "key": "2"}])
    assert process.ask("journeys_show", name="welcome_series")["people"] == 1


def test_the_list_says_which_events_nobody_has_sent_and_what_is_installed() -> None:
    process = Process(MemoryStore(), MAIL)
    process.ask("record", events=[{"type": "signed_up", "identifiers": {"user_id": "ada"}, "key": "1"}])
    process.ask("gallery_install", name="welcome")
    listed = {entry["name"]: entry for entry in process.ask("gallery_list")["entries"]}
    assert [*listed] == NAMES
    assert (listed["welcome"]["unseen"], listed["welcome"]["installed"]) == (["purchase_completed"], True)
    assert not listed["review"]["installed"]


def test_an_unknown_entry_is_named_with_the_nearest_one() -> None:
    with pytest.raises(NotFound, match="did you mean 'win_back'"):
        Process(MemoryStore()).ask("gallery_show", name="winback")
