"""Why an event happened, in a timeline and on the event's own screen."""

from __future__ import annotations

from pathlib import Path

from tests.console.stage import opened, signed_in
from threadline.kernel.event import Event, Identifier

SEGMENTS = "segments: {buyers: {when: {field: features.has_purchased, equals: true}}}"


def test_an_entry_by_an_imported_order_says_that_it_is_history_and_a_live_one_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "threadline.yaml").write_text(SEGMENTS)
    for historical in (True, False):
        with opened(tmp_path / "threadline.yaml") as engine:
            ordered = Event(
                type="purchase_completed",
                identifiers=(Identifier("user_id", "ada"),),
                occurred_at=1,
                key="1",
                historical=historical,
            )
            engine.recorder.record([ordered])
            client, person = signed_in(engine), engine.reader.person("default", "user_id:ada")
            (entered,) = [each for each in engine.reader.events(person) if each.event.type == "segment_entered"]
            # A timeline says it once, of the order that led to the entry.
            for address, badge in (
                ("/people/user_id:ada?tab=events", "imported"),
                (f"/events/{entered.id}", "history"),
            ):
                assert (f">{badge}<" in client.get(address).text.lower()) is historical, address
