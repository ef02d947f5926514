"""Law: to an agent without the scope `personal` no tool, resource or error shows personal data of anybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.laws.person_stage import DEFINITIONS, MARK, Stage
from threadline.app import open_engine
from threadline.kernel.errors import ThreadlineError
from threadline.settings import Settings
from threadline.surfaces.mcp import calling
from threadline.surfaces.mcp.calling import Calls
from threadline.surfaces.mcp.protocol import described
from threadline.surfaces.mcp.resources import RESOURCES, TEMPLATES, read
from threadline.surfaces.mcp.schemas import LEFT_OUT
from threadline.surfaces.mcp.tool import PERSONAL, Call, Caller, Tool, changes
from threadline.surfaces.mcp.tools import CONFIRM, TOOLS

SHOWN = frozenset({"id", "phone", "tag", "group", "topic", "consent"})
"""Marks that docs/mcp.md says are shown: ids of the shop's own (of a user, a device, a group, a request), tags, and
`category`, which is what a shop sells."""
PHONE = "4915112345678"
"""A phone number that came as a number, under a name that says so."""


RULE = {"conditions": {"field": "event.properties.answer", "equals": "x"}, "actions": [{"tag": {"tag": "asked"}}]}
FEATURES = """
features:
  last_answer: {aggregate: last, of: answer, events: [form_sent]}
"""
GIVEN: Mapping[str, dict[str, Any]] = {
    "memory_variables": {"names": "preference/call"},
    "what_if_run": {"rule": "large", "content": {**RULE, "conditions": {"field": "event.properties.total", "gt": 1}}},
    "rules_write": {"rule": RULE},
    "points_adjust": {"reason": "thanks", "points": 1},
    "quarantine_review": {"join": False},
    "rule_sets_write": {"events": ["x"], "rules": ["large"]},
    "people_split": {"identifiers": ["anonymous_id:adamark-phone"]},
}
"""What an operation needs that has no value of its own below."""
TOO_FEW = frozenset({"lifetime"})
"""Two people are too few for a model to be fitted."""


class Agent(Caller):
    """May call everything, and is shown nothing personal: no credential is so, but each tool may be."""

    def allows(self, scope: str) -> bool:
        return scope != PERSONAL


class MarkedStage(Stage):
    """Everything about two people, with marks in every place where events can have text."""

    def _live(self, who: str) -> None:
        mark = f"{who}mark"
        street = {"street": f"{mark}-street", "lines": [f"{mark}-line", {"floor": f"{mark}-floor"}]}
        context = {
            "ip": f"{mark}-ip",
            "page": {"url": f"https://shop.example/?n={mark}-url", "title": f"{mark}-title"},
            "userAgent": f"{mark}-agent",
            "traits": {"nick": f"{mark}-nick"},
            "campaign": {"source": "letter"},
        }
        event = {
            "type": "form_sent",
            "key": f"{who}-form",
            "identifiers": {"user_id": f"{mark}-id"},
            "context": context,
            "properties": {
                "first_name": f"{mark}-first",
                "phone": int(PHONE),
                "address": street,
                "comment": f"alpha {mark}-comment",
                "answer": f"{mark}-answer",
                "arm": "a",
                "size": "37",
                "plan": "pro",
                "total": 30,
            },
        }
        self.shop.record([event])
        action = {"action": "opened", "topic": "reading", "scope": "page", "value": f"{mark}-value"}
        self.record(who, "app_action", "act", **action)
        self.record(who, "purchase_completed", "bought", total="29.33", currency="EUR", product_name=f"{mark}-product")
        self.record(who, "campaign_engaged", "campaign", campaign_id="c1", channel="mail", answer=f"{mark}-reply")
        self.record(who, "sentiment_detected", "felt", sentiment=f"{mark}-mood")
        super()._live(who)
        self.shop.journeys.enter(f"{mark}-id", "welcome", variables={"name": f"{mark}-wish"}, request=f"{who}-enter")
        self.shop.journeys.exit(f"{mark}-id", "welcome", reason=f"{mark}-left", request=f"{who}-exit")
        self.shop.memory.retract(f"{mark}-id", "preference", "colour", reason=f"{mark}-why", request=f"{who}-retract")
        self.shop.memory.remember(f"{mark}-id", type="preference", key="call", value={"what": f"{mark}-fact"})
        self.shop.rules.write("drafted", rule=RULE)


def marked_stage(folder: Path) -> MarkedStage:
    file = folder / "threadline.yaml"
    file.write_text(DEFINITIONS + FEATURES)
    settings = Settings(definitions=str(file), analytics_dir=str(folder / "analytics"))
    return MarkedStage(lambda clock: open_engine("memory:", settings, clock))


@pytest.fixture(scope="module", autouse=True)
def whole_answers() -> Iterator[None]:
    """No answer is cut: a mark in what is cut off would not be seen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calling, "MCP_ANSWER_BYTES_MAX", 100_000_000)
        yield


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MarkedStage]:
    made = marked_stage(tmp_path_factory.mktemp("masked"))
    yield made
    made.engine.close()


class World:
    """What there is on the stage to call tools with, by the names of parameters."""

    def __init__(self, stage: MarkedStage) -> None:
        self.stage = stage
        self.calls = Calls(stage.engine)
        self.agent = Agent("default", "agent", ("read", "write", "admin"))

    @cached_property
    def events(self) -> list[Any]:
        return list(self.stage.shop.events.feed(limit=1_000).events)

    @cached_property
    def paths(self) -> list[str]:
        """Every property and every part of a context that has a mark, as break-downs name it."""
        found = set[str]()
        for event in self.events:
            for root, value in (("properties", event.properties), ("context", event.context)):
                found |= {path for path, text in _leaves(value, root) if "mark-" in str(text) or PHONE in str(text)}
        assert len(found) > 15
        return sorted(found)

    @cached_property
    def known(self) -> dict[str, list[Any]]:
        shop = self.stage.shop
        features = shop.features.of("adamark-id").features
        decision = shop.decisions.list(person="adamark-id").decisions[0]
        mails = shop.mail.history("adamark-id").mails
        ids = [
            "adamark-id",
            "large",
            "drafted",
            "all",
            "sale",
            "orders",
            decision.decision_id,
            decision.event_id,
            *(event.id for event in self.events if event.type in ("form_sent", "journey_exited", "mail_sent")),
        ]
        for listed, of in (
            (shop.rejected.list().entries, "id"),
            (shop.quarantine.list().joins, "id"),
            (shop.effects.parked().effects, "id"),
            (shop.effects.unknown().effects, "id"),
            (shop.jobs.list().jobs, "id"),
            (shop.what_if.list().saved, "id"),
        ):
            assert listed
            ids += [getattr(each, of) for each in listed[:2]]
        return {
            "id": ids,
            "name": ["marked", "points", "welcome", "monetary_total"],
            "segment": ["marked"],
            "person": ["adamark-id"],
            "other": ["bobmark-id", ids[-1]],
            "rule": ["large"],
            "type": ["preference"],
            "key": ["colour", "call"],
            "template": ["hello"],
            "address": ["adamark-mail@example.com"],
            "decision": [decision.decision_id],
            "message_id": ["ada-form"],
            "message": [each.message for each in mails],
            "text": ["alpha"],
            "steps": [["form_sent", "ordered"]],
            "event": ["form_sent"],
            "feature": [name for name, of in features.items() if isinstance(of.value, str)],
            "journey": ["welcome"],
            "broadcast": ["all"],
            "assignment": ["form_sent"],
            "by": [*self.paths, ""],
            "channel": self.paths,
            "arm": [*self.paths, "arm"],
            "alert": ["sale"],
            "tag": ["vip"],
            "labels": [[]],
            "sources": [True],
            "timeline": [100],
            "limit": [100],
            "payload": [{"type": "x"}],
            "reason": ["complaint"],
            "points": [1],
            "value": ["x"],
            "outcome": ["happened"],
            "add": [["x"]],
            "title": ["t"],
            "version": [1],
            "one": ids[-1:],
        }

    def arguments(self, tool: Tool, call: Call) -> Iterator[dict[str, Any]]:
        """Ways to call an operation: with each value of what it needs, and of each break-down, one at a time."""
        operation = next(each for each in self.stage.engine.catalogue.operations if each.name == call.operation)
        back = {there: here for here, there in call.renamed.items()}
        fields = msgspec.structs.fields(operation.params)
        given = {name: [value] for name, value in GIVEN.get(operation.name, {}).items()}
        known = {**self.known, **given}
        needed = [
            *(field.encode_name for field in fields if field.required),
            *(call.renamed[name] for name in call.needed),
        ]
        needed = [name for name in dict.fromkeys([*needed, *given]) if name not in LEFT_OUT | call.fixed.keys()]
        for values in product(*(known[name] for name in needed)):
            required = {back.get(name, name): value for name, value in zip(needed, values, strict=True)}
            yield required
            for field in fields:
                name = field.encode_name
                if name in needed or name in call.fixed or name not in known:
                    continue
                values = known[name] if operation.name == "analytics_trend" or name not in _ASKED else known[name][::9]
                if name in _ASKED or len(values) == 1:
                    yield from ({**required, back.get(name, name): value} for value in values)


_ASKED = frozenset({"by", "channel", "arm"})
"""Parameters that name what a break-down is by. Every place with a mark is asked for, by the cheapest question."""


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}")
    else:
        yield path, value


def leaked(answer: Any, given: Any = None) -> set[str]:
    """The marks in an answer that are personal, and that the caller has not said."""
    text, own = msgspec.json.encode(answer), msgspec.json.encode(given)
    found = {mark[0].decode() for mark in MARK.finditer(text) if mark[0].lower() not in own.lower()}
    personal = {mark for mark in found if mark.partition("-")[2].lower() not in SHOWN}
    return personal | ({PHONE} if PHONE.encode() in text else set())


def choices() -> list[Any]:
    return [pytest.param(tool, id=tool.name) for tool in TOOLS]


@pytest.fixture(scope="module")
def world(stage: MarkedStage) -> World:
    return World(stage)


CONFIRMING = Tool(CONFIRM, "", "", "", {})


def called(world: World, tool: Tool, given: dict[str, Any]) -> Any:
    """The answer of a tool to an agent, or its error."""
    try:
        return world.calls.call(tool.name, given, world.agent)
    except ThreadlineError as problem:
        return {"error": world.calls.error(described(problem), given, world.agent)}


@pytest.mark.parametrize("tool", choices())
def test_no_tool_and_no_error_of_one_shows_a_mark(world: World, tool: Tool) -> None:
    operations = {each.name: each for each in world.stage.engine.catalogue.operations}
    answered = Counter[str]()
    for choice, call in tool.all_calls(operations).items():
        for given in world.arguments(tool, call):
            asked = {tool.choice: choice, **given}
            answer = called(world, tool, asked)
            assert leaked(answer, asked) == set(), asked
            answered[choice] += "error" not in answer
    assert {choice for choice in tool.all_calls(operations) if not answered[choice]} <= TOO_FEW


def test_no_change_that_is_confirmed_shows_a_mark(tmp_path: Path) -> None:
    world = World(marked_stage(tmp_path))
    operations = {each.name: each for each in world.stage.engine.catalogue.operations}
    confirmed = set[str]()
    for tool in TOOLS:
        for choice, call in tool.all_calls(operations).items():
            for given in world.arguments(tool, call) if changes(operations[call.operation], call) else ():
                asked = {tool.choice: choice, **given}
                token = called(world, tool, asked).get("confirm")
                if token is not None:
                    confirm = {"token": token, "tool": tool.name, "arguments": asked}
                    answer = called(world, CONFIRMING, confirm)
                    assert leaked(answer, asked) == set(), asked
                    confirmed |= {choice} if "error" not in answer else set()
    assert len(confirmed) > 25
    world.stage.engine.close()


def test_an_error_quotes_what_the_call_says_and_names_of_ours(world: World) -> None:
    tool = next(tool for tool in TOOLS if tool.name == "tell_about_person")
    nobody = called(world, tool, {"id": "eve"})["error"]
    assert "'eve'" in nobody["detail"]
    unknown = called(world, tool, {"id": "adamark-id", "about": "points", "days": 3})["error"]
    assert unknown["detail"].startswith("'days' is not a parameter of 'points_of'")
    error = {"detail": "this is 'Ada', as 'points_of' says", "hint": "ask ada@example.com"}
    seen = {"detail": "this is '[masked]', as 'points_of' says", "hint": "ask [email]"}
    assert world.calls.error(error, {}, world.agent) == seen


def test_no_resource_shows_a_mark(world: World) -> None:
    names = {"id": "large", "name": "welcome", "template": "hello"}
    for resource in (*RESOURCES, *TEMPLATES):
        assert leaked(read(resource.uri.format(**names), world.calls, world.agent)) == set()


def test_what_is_granted_shows_the_marks_that_are_masked_else(world: World) -> None:
    """The stage would prove nothing if its marks could not be seen."""
    granted = Caller("default", "granted", ("read", "write", "personal"))
    answers = [
        world.calls.call(name, given, granted)
        for name, given in (
            ("find_person", {}),
            ("tell_about_person", {"id": "adamark-id"}),
            ("timeline", {"id": "adamark-id", "limit": 100}),
            ("ask_analytics", {"question": "trend", "event": "form_sent", "by": "properties.address.street"}),
        )
    ]
    assert [len(leaked(answer)) > 1 for answer in answers] == [True] * len(answers)


def test_every_type_that_only_we_record_says_what_of_its_events_is_not_personal(world: World) -> None:
    catalogue = world.stage.engine.catalogue
    own = {name for name, type in catalogue.event_types.declared.items() if type.speaker != "anyone"}
    own = own.union(*(policy.emits or () for policy in catalogue.policies))
    assert len(own) > 50
    assert own - catalogue.shown_properties.keys() == set()


def test_of_events_of_ours_names_of_definitions_are_shown(world: World) -> None:
    entries = world.calls.call("timeline", {"id": "adamark-id", "limit": 100}, world.agent)["answer"]["entries"]
    seen = {entry["event"]["type"]: entry["event"]["properties"] for entry in entries}
    assert seen["segment_entered"]["segment"] == "marked"
    assert (seen["mail_sent"]["template"], seen["mail_sent"]["address"]) == ("hello", "[masked]")
    assert (seen["decision_made"]["rule"], seen["decision_made"]["status"]) == ("large", "Matched")
    assert seen["points_adjusted"] == {"points": 7, "reason": "[masked]"}
    assert (seen["form_sent"]["total"], seen["form_sent"]["answer"]) == (30, "[masked]")
