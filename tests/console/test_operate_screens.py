"""The operations screens show what there is: a join in doubt, a timer that is pending."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.console.stage import NOW, close_up, csrf_of, opened, signed_in, unsafe
from threadline.app import open_engine
from threadline.engine.scheduled import timer_put
from threadline.kernel.event import Identifier, thread_id
from threadline.kernel.policy import Timer
from threadline.kernel.store import Batch
from threadline.kernel.time import HOUR, MINUTE, format_time
from threadline.settings import Settings
from threadline.surfaces.console.queues import queues, receiver
from threadline.surfaces.console.screens import screens
from threadline.surfaces.python.embedded import Threadline


def test_a_join_in_doubt_names_the_two_who_may_be_one():
    with opened() as engine:
        shop = Threadline(engine)
        for who in ("ada", "bob"):
            shop.record([{"type": "page", "key": who, "identifiers": {"user_id": who, "anonymous_id": "device"}}])
        assert shop.quarantine.list().joins
        page = signed_in(engine).get("/quarantine")
    assert page.status_code == 200
    assert "user_id:bob" in page.text


def test_pending_timers_are_listed_by_due_time_with_their_person():
    with opened() as engine:
        shop = Threadline(engine)
        shop.record([{"type": "page", "key": "1", "identifiers": {"user_id": "ada"}}])
        thread = thread_id("default", Identifier("user_id", "ada"))
        timers = [Timer(key=key, due_at=NOW + due * HOUR, data={}) for key, due in (("timer-two", 2), ("timer-one", 1))]
        puts = [timer_put("default", thread, "journeys", each) for each in timers]
        other = timer_put("other", "0" * 32, "journeys", Timer(key="foreign", due_at=NOW, data={}))
        assert engine.store.commit([Batch(writes=[*puts, other])]) == [None]
        first = shop.effects.timers(limit=1)
        second = shop.effects.timers(limit=1, cursor=first.next)
        assert [each.key for each in (*first.timers, *second.timers)] == ["timer-one", "timer-two"]
        assert first.timers[0].person == thread
        page = signed_in(engine).get("/timers")
    assert page.status_code == 200
    assert page.text.index("timer-one") < page.text.index("timer-two")
    assert "foreign" not in page.text


JOURNEY = """
mail: {senders: {shop: {from: shop@example.com}}, templates: {first: {subject: First, text: Hello}}}
journeys: {welcome: {trigger: {event: page}, steps: [{send: first}]}}
"""


def test_a_timer_says_what_it_is_for_and_whom_it_is_about_and_its_key_in_a_detail(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(JOURNEY)
    with opened(file) as engine:
        shop = Threadline(engine)
        shop.identify("ada", {"first_name": "Ada"})
        thread = thread_id("default", Identifier("user_id", "ada"))
        timer = Timer(key="<i>welcome</i>/0123456789abcdef", due_at=NOW + 90 * MINUTE, data={"<b>": "</pre>"})
        assert engine.store.commit([Batch(writes=[timer_put("default", thread, "journeys", timer)])]) == [None]
        page = signed_in(engine).get("/timers").text
    outside, _, detail = page.partition('<details class="detail">')
    assert "Goes on in the journey &lt;i&gt;welcome&lt;" in outside
    assert ">Ada</a>" in outside
    assert "in 1 h" in outside
    assert "0123456789abcdef" not in outside
    assert "0123456789abcdef" in detail.partition("</details>")[0]
    assert unsafe(page) == []


SEGMENTS = """
segments:
  fresh: {when: {field: features.recency_days, less_than: 2}}
  lapsed: {when: {field: features.recency_days, greater_than: 2}}
"""


def test_a_timer_of_segments_says_which_one_may_be_entered_or_left_then(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(SEGMENTS)
    with opened(file) as engine:
        shop = Threadline(engine)
        at = format_time(NOW - HOUR)
        shop.track("ada", "purchase_completed", {"total": 5, "currency": "EUR"}, occurred_at=at)
        shop.track("bob", "purchase_completed", {"total": 5, "currency": "EUR"}, occurred_at=at)
        bob = thread_id("default", Identifier("user_id", "bob"))
        early = Timer(key="early", due_at=NOW + MINUTE, data={})
        assert engine.store.commit([Batch(writes=[timer_put("default", bob, "segments", early)])]) == [None]
        page = signed_in(engine).get("/timers").text
        scheduled = close_up(signed_in(engine).get("/people/user_id:ada").text).partition("<h2>Scheduled</h2>")[2]
    assert "May leave the segment fresh; May enter the segment lapsed</dd>" in scheduled.partition("</section>")[0]
    assert "segments_of" not in page, "the page by hand is one call"
    assert re.findall(r"Looks at segments again|[^<\n]* the segment [^<\n]*", page) == [
        "Looks at segments again",
        "May leave the segment fresh; May enter the segment lapsed",
        "May leave the segment fresh; May enter the segment lapsed",
    ]


def test_calls_to_addresses_in_rules_are_one_queue_and_each_is_shown_with_its_host() -> None:
    busy = {"retried": 1, "state": "open", "oldest": None}
    listed = {
        "queues": [
            queue("crm", **busy),
            {**queue("url.0", waiting=2, **busy), "oldest": "2026-01-02T00:00:00Z"},
            {**queue("url.3", waiting=1, parked=4, **busy), "oldest": "2026-01-01T00:00:00Z", "state": "resting"},
        ]
    }
    merged = queues(Answering({"effects_queues": listed}))  # type: ignore[arg-type]
    assert [each["name"] for each in merged] == ["crm", "Addresses in rules"]
    assert (merged[1]["waiting"], merged[1]["retried"], merged[1]["parked"]) == (3, 2, 4)
    assert (merged[1]["oldest"], merged[1]["state"]) == ("2026-01-01T00:00:00Z", "resting")
    assert receiver("url.2", "https://ada:secret@hooks.example.com:8443/a?b=c") == "hooks.example.com:8443"
    assert receiver("url.2", "https://[broken") == receiver("url.2", None) == "Addresses in rules"
    assert (receiver("crm", "https://crm.example.com"), receiver("", None)) == ("crm", "No destination")


def test_only_a_list_with_buttons_has_a_column_for_them():
    with opened() as engine:
        shop = Threadline(engine)
        shop.identify("ada")
        thread = thread_id("default", Identifier("user_id", "ada"))
        timer = Timer(key="welcome/1", due_at=NOW + HOUR, data={})
        assert engine.store.commit([Batch(writes=[timer_put("default", thread, "journeys", timer)])]) == [None]
        client = signed_in(engine)
        assert ">Actions</span>" not in client.get("/timers").text
        shop.keys.create(name="web")
        assert ">Actions</span>" in client.get("/keys").text


def queue(name: str, **counts: int) -> dict[str, Any]:
    return {"name": name, "waiting": 0, "parked": 0, "unknown": 0, **counts}


ANSWERS = {
    "doctor": {"findings": []},
    "search_status": {"complete": True, "engine": "embedded", "documents": 1},
    "effects_queues": {"queues": [queue("mail", waiting=3), queue("url.0"), queue("", parked=1)]},
    "jobs_list": {},
}


class Answering:
    """What a screen asks, answered from a table."""

    def __init__(self, answers: dict[str, Any] = ANSWERS) -> None:
        self.answers = answers

    def ask(self, name: str, **values: Any) -> Any:
        return self.answers[name]

    def ask_or(self, default: Any, name: str, **values: Any) -> Any:
        return self.answers[name]


def test_health_lists_queues_in_which_something_waits_and_counts_the_others():
    health = next(each for each in screens() if each.name == "health")
    checks = [(each["title"], each["state"]) for each in health.load(Answering())["checks"]]  # type: ignore[arg-type]
    assert checks == [
        ("search", "good"),
        ("queue mail", "good"),
        ("queue No destination", "bad"),
        ("queues", "good"),
        ("jobs", "good"),
    ]


def test_what_is_not_well_says_so_in_a_sentence_and_what_to_do():
    health = next(each for each in screens() if each.name == "health")
    checks = health.load(Answering())["checks"]  # type: ignore[arg-type]
    assert [each["title"] for each in checks if not each["sentence"].endswith(".")] == []
    assert [each["title"] for each in checks if each["state"] != "good" and not each["to_do"]] == []


def test_the_scopes_of_a_token_are_boxes_and_it_was_not_used_before_it_was_made() -> None:
    made = open_engine("memory:", Settings(), lambda: NOW + 30 * MINUTE)
    with closing(made) as engine:
        client = signed_in(engine)
        page = client.get("/keys").text
        boxes = re.findall(r'type="checkbox" name="scopes:list" value="(\w+)"', page)
        assert sorted(boxes) == ["admin", "personal", "read", "write"]
        form = {"_csrf": csrf_of(client, engine), "name": "deploys", "kind": "token", "scopes:list": ["read", "admin"]}
        secret = client.post("/do/keys_create", data=form, headers={"accept": "application/json"}).json()["result"][
            "secret"
        ]
        token = engine.credentials.find(secret)
        assert token is not None
        assert token.scopes == ("read", "admin")
        row = close_up(client.get("/keys").text).partition("deploys")[2].partition("</tr>")[0]
    since, *used = re.findall(r'<time datetime="([^"]*)"', row)
    assert used == [since], "a use is noted to the hour, which began before the token was made"
