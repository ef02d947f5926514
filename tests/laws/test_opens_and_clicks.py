"""Law: every reader of opens and clicks agrees on who opened and who clicked, and none ever takes one back.

The expected value comes from a reckoner that sees all requests at the end. Readers are found: a module that names one
of the two events is in a table here or fails, and every analysis that takes an event type is asked.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, get_args, get_origin

import msgspec
import pytest

import threadline
from tests.capabilities.feedback_stage import BROWSER, Stage
from tests.capabilities.test_feedback_links import follow
from tests.exports.curated_stage import ask
from threadline.capabilities.reach.broadcasts.measuring import measured
from threadline.capabilities.reach.broadcasts.repository import Recipient
from threadline.capabilities.reach.feedback.links import click_url, pixel_url
from threadline.exports.analytics.first_use import DuckAnalytics
from threadline.kernel.errors import InvalidValue
from threadline.kernel.operation import EVENT_TYPE, Operation
from threadline.kernel.time import DAY, SECOND

SOURCE = Path(threadline.__file__).parent
AGENTS = [BROWSER, "Mozilla/5.0 (Windows NT 10.0) Chrome/120.0 Safari/537.36", "BarracudaCentral"]
PROXY = "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)"
LINKS = ["https://shop.example/a", "https://shop.example/b", "https://shop.example/c", ""]
WHO = [f"p{number}" for number in range(6)]
YAML = """
campaigns: {own_mail: true}
mail:
  senders: {shop: {from: shop@shop.example}}
  templates: {hello: {subject: Hi, text: Hi}}
features:
  clicks: {aggregate: count, events: mail_clicked}
  clicks_of_people: {aggregate: count, events: mail_clicked, where: {machine: false}}
  opens: {aggregate: count, events: mail_opened}
  opens_of_people: {aggregate: count, events: mail_opened, where: {machine: false}}
segments:
  clicked: {when: {field: features.clicks, greater_than: 0}}
  opened: {when: {field: features.opens, greater_than: 0}}
journeys:
  any: {trigger: {event: mail_clicked}, steps: [{wait: 30d}, {send: hello}]}
  people: {trigger: {event: mail_clicked, where: {machine: false}}, steps: [{wait: 30d}, {send: hello}]}
  openers: {trigger: {event: mail_opened}, steps: [{wait: 30d}, {send: hello}]}
"""


class Request(NamedTuple):
    """A request for the picture (no link) or a link of somebody's mail."""

    at: int
    who: str
    link: str | None
    agent: str


class Seen(NamedTuple):
    """What a reader says: by person, how often; None where it says only who did."""

    opened: dict[str, int] | set[str] | None = None
    clicked: dict[str, int] | set[str] | None = None


def reckoned(requests: list[Request]) -> Seen:
    """Who did what, row by row against all other rows."""
    people = [request for request in requests if not is_machine(request, requests)]
    opened, clicked = dict[str, int](), dict[str, int]()
    for request in people:
        counts = opened if request.link is None else clicked
        counts[request.who] = counts.get(request.who, 0) + 1
    return Seen(opened, clicked)


def is_machine(request: Request, requests: list[Request]) -> bool:
    if request.agent == PROXY and request.link is None:
        return False
    if "Barracuda" in request.agent or request.link == "" or request.agent == PROXY:
        return True
    clicks = [each for each in requests if each.who == request.who and each.link is not None]
    if request.link is None:
        before = [each for each in clicks if each.at < request.at]
        near = [each for each in before if each.agent == request.agent and _seconds(each, request) >= -60]
        return any(is_scanned(each, before) for each in near)
    # It is decided ten seconds after it, before what comes at that very instant.
    return is_scanned(request, [each for each in clicks if _seconds(each, request) < 10])


def is_scanned(click: Request, clicks: list[Request]) -> bool:
    if any(each.link == "" and abs(_seconds(each, click)) <= 60 for each in clicks):
        return True
    starts = [each for each in clicks if 0 <= _seconds(click, each) <= 10]
    return any(len({each.link for each in clicks if 0 <= _seconds(each, first) <= 10}) >= 3 for first in starts)


def _seconds(one: Request, other: Request) -> float:
    return (one.at - other.at) / SECOND


class World:
    """Mails of one broadcast, one to each person, and what was asked for of them."""

    def __init__(self) -> None:
        self.stage = Stage(yaml=YAML)
        self.stage.engine.analytics = DuckAnalytics(self.stage.engine)
        about = {"broadcast": "april", "arm": "all"}
        self.message = {who: self.stage.mail(f"{who}@example.com", who, **about) for who in WHO}
        self.of_message = {message: who for who, message in self.message.items()}
        self.of_person = {self.person(who).id: who for who in WHO}
        self.requests: list[Request] = []

    def person(self, who: str) -> Any:
        return self.stage.engine.reader.person("default", f"user_id:{who}")

    def request(self, who: str, link: str | None, agent: str) -> None:
        engine, message = self.stage.engine, self.message[who]
        url = pixel_url(engine, "default", message) if link is None else _click_url(engine, message, link)
        self.requests.append(Request(self.stage.now, who, link, agent))
        follow(self.stage, url, agent)

    def named(self, people: Iterator[str] | list[str]) -> set[str]:
        return {self.of_person[person] for person in people}


def _click_url(engine: Any, message: str, link: str) -> str:
    if link:
        return click_url(engine, "default", message, link)
    return engine.public_address.url(f"/m/c/{engine.signer.sign('mail_click', 'default', message, '')}")


def by_counters(world: World) -> Seen:
    counts = world.stage.run("feedback_counters", broadcast="april").counts
    listed = by_events(world)
    assert (counts.opened.unique, counts.clicked.unique) == tuple(map(len, listed))
    assert (counts.opened.total, counts.clicked.total) == tuple(sum(each.values()) for each in listed)
    return listed


def by_events(world: World) -> Seen:
    found: dict[str, dict[str, int]] = {"mail_opened": {}, "mail_clicked": {}}
    for event in world.stage.run("feedback_events", broadcast="april", limit=1_000).events:
        if event.type in found and not event.machine:
            who = world.of_message[event.message]
            found[event.type][who] = found[event.type].get(who, 0) + 1
    return Seen(found["mail_opened"], found["mail_clicked"])


def by_ledger(world: World) -> Seen:
    statuses = {who: world.stage.run("mail_history", id=f"user_id:{who}").mails[0].status for who in WHO}
    return Seen(clicked={who for who, status in statuses.items() if status == "clicked"})


def by_broadcast(world: World) -> Seen:
    def gained(metric: str) -> set[str]:
        found = {
            who: measured(
                world.stage.engine, "default", "april", [Recipient(world.person(who).id, "all")], metric, "", 0
            )["gained.all"]
            for who in WHO
        }
        return {who for who, count in found.items() if count}

    return Seen(gained("opens"), gained("clicks"))


def by_sql(world: World) -> Seen:
    rows = ask(world.stage.engine, None, "SELECT message, opens, clicks FROM sends")
    assert len(rows) == len(WHO)
    return Seen(
        *({world.of_message[row["message"]]: row[name] for row in rows if row[name]} for name in ("opens", "clicks"))
    )


def by_address(world: World) -> Seen:
    """A mail that reached somebody: bounces before it count no more."""
    views = {who: world.stage.engine.reader.views(world.person(who), world.stage.now + 1)["feedback"] for who in WHO}
    reached = {who for who, view in views.items() if any(each["reached_at"] for each in view.values())}
    assert reached == set(by_events(world).opened or ()) | set(by_events(world).clicked or ())
    return Seen()


READ_AS = ("opens", "opens_of_people", "clicks", "clicks_of_people")


def by_definitions(world: World) -> Seen:
    """Features, segments and journeys, with and without a condition on machines."""
    engine, found = world.stage.engine, dict[str, Any]()
    for who in WHO:
        views = engine.reader.views(world.person(who), world.stage.now + 1)
        values = {name: views["features"][name]["value"] for name in READ_AS}
        for name, of_people in (("opens", "opens_of_people"), ("clicks", "clicks_of_people")):
            assert values[name] == values[of_people]
        clicked, opened = bool(values["clicks"]), bool(values["opens"])
        segments = {name for name, each in views["segments"].items() if each}
        assert ("clicked" in segments, "opened" in segments) == (clicked, opened)
        entered = {each.properties["journey"] for each in world.stage.events(who, "journey_entered")}
        assert entered == ({"any", "people"} if clicked else set()) | ({"openers"} if opened else set())
        found[who] = values
    return Seen(*({who: each[name] for who, each in found.items() if each[name]} for name in ("opens", "clicks")))


def by_campaigns(world: World) -> Seen:
    """One campaign went to each person: its rates are 0 or 1."""
    engine, now = world.stage.engine, world.stage.now + 1
    features = {who: engine.reader.views(world.person(who), now)["features"] for who in WHO}
    return Seen(
        *(
            {who for who, each in features.items() if each[name]["value"] == 1}
            for name in ("campaign_open_rate", "campaign_click_rate")
        )
    )


def by_analyses(world: World) -> Seen:
    """Whatever analysis takes an event type answers the same with and without a condition on machines."""
    for operation in analyses():
        for param in event_params(operation):
            for type in ("mail_opened", "mail_clicked"):
                by_people = json.dumps({"event": type, "where": {"machine": False}})
                whole, part = (_asked(world, operation, param, type, step) for step in (type, by_people))
                assert whole == part, (operation.name, param)
    for type, seen in zip(("mail_opened", "mail_clicked"), by_events(world), strict=True):
        trend = world.stage.run("analytics_trend", event=type)
        assert sum(row.events for row in trend.rows) == sum((seen or {}).values())  # type: ignore[union-attr]
    return Seen()


def _asked(world: World, operation: Operation, param: str, type: str, step: str) -> Any:
    given = {"event": "mail_sent", **REQUIRED.get(operation.name, {}), param: step}
    fields = {field.name: field for field in msgspec.structs.fields(operation.params)}
    given = {name: value for name, value in given.items() if name in fields}
    if get_origin(_plain(fields[param].type)) is list:
        given[param] = ["mail_sent", step]
    elif step.startswith("{") and "where" in fields and param == "event":
        given |= {"event": type, "where": json.dumps({"machine": False})}
    try:
        answer = msgspec.to_builtins(world.stage.run(operation.name, **given))
    except InvalidValue as error:
        return str(error)
    del answer["sql"]
    return _unnamed(answer, type)


def _unnamed(value: Any, type: str) -> Any:
    """An answer without how the event is called there: with a condition it is in the name."""
    if isinstance(value, dict):
        return {_unnamed(name, type): _unnamed(each, type) for name, each in value.items()}
    if isinstance(value, list):
        return [_unnamed(each, type) for each in value]
    return type if isinstance(value, str) and type in value else value


def _plain(annotated: Any) -> Any:
    return get_args(annotated)[0] if hasattr(annotated, "__metadata__") else annotated


REQUIRED: dict[str, dict[str, Any]] = {
    "analytics_attribution": {"channel": "link"},
    "analytics_experiment": {"assignment": "mail_sent", "arm": "arm"},
    "analytics_funnel": {"steps": ["mail_sent", "mail_clicked"]},
}


@cache
def analyses() -> tuple[Operation, ...]:
    """The analyses that take an event type."""
    operations = Stage(yaml=YAML).engine.catalogue.operations
    return tuple(each for each in operations if each.name.startswith("analytics_") and event_params(each))


def event_params(operation: Operation) -> list[str]:
    """The parameters that are event types, found by their annotation."""

    def marked(annotation: Any) -> bool:
        return EVENT_TYPE in getattr(annotation, "__metadata__", ()) or any(map(marked, get_args(annotation)))

    return [field.name for field in msgspec.structs.fields(operation.params) if marked(field.type)]


READERS: dict[str, Callable[[World], Seen]] = {
    "capabilities/reach/feedback/counting.py": by_counters,
    "capabilities/reach/feedback/operations/events.py": by_events,
    "capabilities/reach/feedback/projection.py": by_address,
    "capabilities/reach/mail/projection.py": by_ledger,
    "capabilities/reach/broadcasts/projection.py": by_broadcast,
    "exports/curated/queries.py": by_sql,
    "capabilities/profile/features": by_definitions,
    "capabilities/reach/feedback/own_campaigns.py": by_campaigns,
    "capabilities/ask/analytics": by_analyses,
}
"""What reads the two events -> what it says of them."""
WRITERS = {
    "capabilities/reach/feedback/events.py",
    "capabilities/reach/feedback/recording.py",
    "capabilities/reach/feedback/policy.py",
    "capabilities/reach/feedback/fetches.py",
}
OF_TYPES_ONLY = {"capabilities/operate/retention/definition.py", "surfaces/console/sentences.py"}
"""They name types and look at no event: how long one is stored, how one is put into words."""


def test_modules_that_name_opens_or_clicks_are_those_whose_numbers_are_compared() -> None:
    named = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not any(name in text.lower() for name in ("mail_opened", "mail_clicked")):
            continue  # to read the syntax of every file takes five seconds
        tree = ast.parse(text)
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        if names & {"MAIL_OPENED", "MAIL_CLICKED"} or texts & {"mail_opened", "mail_clicked"}:
            named.add(str(path.relative_to(SOURCE)))
    compared = {name for name in READERS if name.endswith(".py")} - {"capabilities/reach/feedback/operations/events.py"}
    assert named - WRITERS - OF_TYPES_ONLY - compared <= EXAMPLES
    assert compared | WRITERS <= named
    assert len(analyses()) >= 8


EXAMPLES = {"capabilities/reach/feedback/operations/events.py"}
"""They name a type in an example only."""


@pytest.mark.parametrize("run", range(4))
def test_readers_of_opens_and_clicks_agree_with_a_reckoner_and_take_nothing_back(seed: int, run: int) -> None:
    pytest.importorskip("duckdb")
    random, world = Random(f"{seed}/{run}"), World()
    before: dict[str, Seen] = {}
    for _ in range(9):
        who = random.choice(WHO)
        if random.random() < 0.4:  # a scanner, fast or slow, with or without the picture
            agent = random.choice(AGENTS)
            for link in random.sample([None, *LINKS], random.randrange(2, 5)):
                world.request(who, link, agent)
                _passes(world, random.choice([0.5, 2, 4]))
        else:
            world.request(who, random.choice([None, *LINKS[:3]]), random.choice([*AGENTS[:2], PROXY]))
        _passes(world, random.choice([0.5, 3, 12, 90]))
        now = {name: READERS[name](world) for name in LIVE}
        for name, seen in before.items():
            for former, later in zip(seen, now[name], strict=True):
                assert set(former or ()) <= set(later or ()), name
        before = now
    _passes(world, 30)  # what is decided a day late begins no journey
    _passes(world, DAY / SECOND)
    expected = reckoned(world.requests)
    for name, reader in READERS.items():
        for wanted, found in zip(expected, reader(world), strict=True):
            if found is not None:
                assert found == (set(wanted or ()) if isinstance(found, set) else wanted), name


LIVE = [name for name, reader in READERS.items() if reader in (by_counters, by_events, by_ledger, by_broadcast)]
"""Those that are asked again and again; the others read all events each time."""


def _passes(world: World, seconds: float) -> None:
    """Let time pass, and what is due happen at its time."""
    until = world.stage.now + int(seconds * SECOND)
    while world.stage.now < until:
        world.stage.now = min(world.stage.now + SECOND // 2, until) if seconds < 100 else until
        world.stage.work()
