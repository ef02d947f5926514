"""Every screen in a real browser, with the CDNOW shop and the activity of real projects: it can be read and used by
everybody, asks nobody else, and says nothing in the console."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.activity import commits, event
from tests.cdnow import messages, tell
from tests.console.browser import SCHEMES, WIDTHS, Server, Watched, detail_of, served
from threadline.engine.engine import Engine
from threadline.surfaces.console.screens import screens
from threadline.surfaces.python.embedded import Threadline

pytestmark = pytest.mark.browser

ALL = bool(os.environ.get("THREADLINE_TEST_CONSOLE"))
"""Whether each screen is looked at in both schemes and both widths, with more people; else each in one of the four."""
ORDERS, COMMITS = (6_919, 2_000) if ALL else (150, 60)
LISTS = [each for each in screens() if "{" not in each.path]
DETAILS = [each for each in screens() if "{" in each.path]
CHART = {} if ALL else {"analysis": "/analytics/trend?per=month"}
"""By day, three decades of commits are tens of thousands of marks, on which axe-core works for twenty seconds."""
VIEWS = [(scheme, width) for scheme in SCHEMES for width in WIDTHS]


def fill(engine: Engine) -> None:
    shop = Threadline(engine, workspace="default", source="cdnow")
    tell(shop, messages()[:ORDERS])
    told = [event(commit) for commit in commits()[:COMMITS]]
    assert {receipt.status for receipt in engine.recorder.record(told)} == {"accepted"}
    first = messages()[0]["userId"]
    shop.identify(first, {"first_name": "Ada", "email": "ada@example.com"})
    shop.track(first, "Product Viewed", {"product_id": "p1", "name": "A record"})


@pytest.fixture(scope="module")
def server(browser: Any) -> Iterator[Server]:
    with served(fill) as made, Watched(browser, made) as watched:
        watched.sign_in()
        found: dict[str, str] = {}
        for screen in LISTS:
            for address in sorted(watched.linked(screen.path)):
                found.setdefault(detail_of(address), address)
        yield made._replace(paths=found | CHART)


@pytest.mark.parametrize("number", range(len(VIEWS)), ids=[f"{scheme}-{width}" for scheme, width in VIEWS])
def test_every_screen_fits_and_is_accessible_and_quiet(browser: Any, server: Server, number: int) -> None:
    scheme, width = VIEWS[number]
    wrong: list[str] = []
    paths = [
        *(each.path for each in LISTS),
        *(server.paths[each.name] for each in DETAILS if each.name in server.paths),
    ]
    with Watched(browser, server, scheme=scheme, width=width) as watched:
        watched.sign_in()
        for place, path in enumerate(paths):
            if not ALL and place % len(VIEWS) != number:
                continue
            watched.look(path)
            wrong += [f"{path}: too wide: {each}" for each in watched.too_wide()]
            wrong += [f"{path}: astray: {each}" for each in watched.astray()]
            wrong += [f"{path}: {each}" for each in watched.serious()]
    found = "\n".join([*wrong, *watched.faults])
    assert not found, found


def test_a_field_beside_its_label_and_a_tab_out_of_sight_are_astray(browser: Any, server: Server) -> None:
    with Watched(browser, server, width=WIDTHS[0]) as watched:
        watched.sign_in()
        watched.look(server.paths["person"] + "?tab=privacy")
        assert watched.astray() == []
        watched.page.evaluate("document.querySelector('.tabs').scrollLeft = 0")
        assert len(watched.astray()) == 1
    with Watched(browser, server, width=WIDTHS[1]) as watched:
        watched.sign_in()
        watched.look("/people")
        watched.page.evaluate("document.querySelector('label.field').style.display = 'block'")
        assert len(watched.astray()) == 1


def test_every_list_leads_to_what_is_in_it(server: Server) -> None:
    assert {"person", "event"} <= server.paths.keys()


def test_the_sign_in_is_accessible_in_light_and_dark(browser: Any, server: Server) -> None:
    for scheme, width in VIEWS:
        with Watched(browser, server, scheme=scheme, width=width) as watched:
            watched.look("/sign-in")
            assert (watched.too_wide(), watched.serious(), watched.faults) == ([], [], [])
