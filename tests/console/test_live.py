"""What is followed as it is committed: nobody falls behind, however much there is."""

from __future__ import annotations

from tests.console.stage import NOW, opened, signed_in
from threadline.engine.accounts import Session
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.following import SHOWN_MAX, follow
from threadline.surfaces.operation_calls import shown
from threadline.surfaces.python.embedded import Threadline

EVENTS = 2_345


def test_a_flood_is_counted_whole_and_its_newest_events_are_shown() -> None:
    with opened() as engine:
        shop, operations = Threadline(engine), shown(engine.catalogue.operations, "http")
        signed_in(engine)
        session: Session | None = engine.accounts.find(engine.accounts.sign_in("admin", "password of admin")[1])
        assert session is not None
        asking = Asking(engine, operations, session, NOW)
        began = follow(asking, "")
        assert (began.items, began.seen) == ([], 0)
        shop.record([{"type": "page", "key": str(n), "identifiers": {"user_id": f"u{n % 50}"}} for n in range(EVENTS)])
        shop.track("last", "page", key="the last")
        fresh = follow(asking, began.cursor)
        assert (fresh.seen, len(fresh.items)) == (EVENTS + 1, SHOWN_MAX)
        assert fresh.items[-1]["key"] == "the last"
        assert follow(asking, fresh.cursor).seen == 0
        asking.query = {"type": "identify"}
        assert follow(asking, began.cursor).items == []
