"""What can be wrong with rules in the files of definitions, and what is remembered of them."""

from __future__ import annotations

import re
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from tests.capabilities.asked import Asked
from threadline.app import open_engine
from threadline.capabilities.decide.rules.actions import KINDS, SYNONYMS
from threadline.capabilities.decide.rules.declared import read_rules
from threadline.capabilities.decide.rules.definition import RULES_SECTION, SETS_SECTION, rule_of_json, set_of_json
from threadline.capabilities.foundation.definitions import Definitions, schema
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.definition_history import DefinitionHistory
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.store import Store
from threadline.stores.memory import MemoryStore

GOOD_TAG = {"tag": {"tag": "x"}}
HAS_TAGS = {"field": "tags", "exists": True}
GOOD = "rules:\n  a: {conditions: {field: event.type, equals: x}}\nrule_sets:\n  s: {events: [x], rules: [a]}\n"


def problems(text: str) -> list[str]:
    definitions = Definitions([("t.yaml", text)])
    read_rules(definitions)
    with pytest.raises(InvalidDefinition) as error:
        definitions.refuse()
    return str(error.value).splitlines()


def rule(body: str) -> str:
    return f"rules:\n  a: {{conditions: {{field: event.type, equals: x}}, {body}}}\n"


def action(text: str) -> str:
    return f"rules:\n  a:\n    conditions: {{field: event.type, equals: x}}\n    actions:\n      - {text}\n"


MISTAKES = [
    ("rules: {A b: {}}", "t.yaml:1: 'A b' is not a valid rule name; use lower-case letters, digits, - and _"),
    ("rules: {a: 7}", "t.yaml:1: rule 'a' must be a mapping, `key: value`"),
    (rule("prority: 7"), "t.yaml:2: rule 'a': unknown key 'prority'; did you mean 'priority'?"),
    ("rules:\n  a: {priority: 7}", "t.yaml:2: rule 'a' needs `conditions` or `model`"),
    (rule("version: 0"), "t.yaml:2: rule 'a': `version` must be a whole number from 1 to 99,999,999"),
    (rule("version: '1'"), "t.yaml:2: rule 'a': `version` must be a whole number"),
    (rule("priority: 1.5"), "t.yaml:2: rule 'a': `priority` must be a whole number from -1,000,000 to 1,000,000"),
    (rule("name: " + "x" * 201), "t.yaml:2: rule 'a': `name` must be text of 0 to 200 characters"),
    (
        rule("effective_from: soon"),
        "t.yaml:2: rule 'a': `effective_from` must be a time, such as 2026-03-01T12:00:00Z: 'soon'",
    ),
    (rule("effective_from: 7"), "t.yaml:2: rule 'a': `effective_from` must be a time"),
    (
        rule("effective_from: 2026-03-02, effective_until: 2026-03-02"),
        "t.yaml:2: rule 'a': `effective_until` is not after `effective_from`",
    ),
    (
        "rules:\n  a:\n    conditions:\n      - x\n",
        "t.yaml:3: rule 'a': `conditions` must be a condition, such as {field: traits.plan, equals: pro}",
    ),
    (
        "rules:\n  a:\n    conditions:\n      all:\n        - {field: tags, contain: x}\n",
        "t.yaml:5: rule 'a': `conditions`: unknown operator 'contain'; did you mean 'contains'?",
    ),
    (rule("actions: {}"), "t.yaml:2: rule 'a': `actions` must be a list of 0 to 20"),
    (
        rule(f"actions: [{', '.join(['{tag: {tag: x}}'] * 21)}]"),
        "t.yaml:2: rule 'a': `actions` must be a list of 0 to 20",
    ),
    (action("tag"), "t.yaml:5: rule 'a': `actions[0]` must be a mapping with one key, such as {tag: {tag: vip}}"),
    (action("{tags: {tag: x}}"), "t.yaml:5: rule 'a': `actions`: unknown action 'tags'; did you mean 'tag'?"),
    (action("{tag: x}"), "t.yaml:5: rule 'a': `actions`: `tag` takes parameters, such as {tag: …}"),
    (action("{tag: {tga: x}}"), "t.yaml:5: rule 'a': `actions`: `tag`: unknown parameter 'tga'; did you mean 'tag'?"),
    (action("{tag: {}}"), "t.yaml:5: rule 'a': `actions`: `tag` needs `tag`"),
    (action("{tag: {tag: ''}}"), "t.yaml:5: rule 'a': `actions`: `tag` takes a text of 1 to 512 bytes"),
    (
        action("{award_points: {points: 0}}"),
        "t.yaml:5: rule 'a': `actions`: `points` takes a whole number of 1 to 1,000,000,000,000",
    ),
    (action("{set_value: {value: 1}}"), "t.yaml:5: rule 'a': `actions`: `set_value` takes either `trait` or `fact`"),
    (
        action("{set_value: {trait: a, fact: b, value: 1}}"),
        "t.yaml:5: rule 'a': `actions`: `set_value` takes either `trait` or `fact`",
    ),
    (
        action("{call_webhook: {payload: {}}}"),
        "t.yaml:5: rule 'a': `actions`: `call_webhook` takes either `destination` or `url`",
    ),
    (
        action("{call_webhook: {url: ftp://x}}"),
        "t.yaml:5: rule 'a': `actions`: `url` takes an address that begins with https:// or http://",
    ),
    (
        action("{log_event: {message: x, level: loud}}"),
        "t.yaml:5: rule 'a': `actions`: `level` is one of debug, info, warning, error",
    ),
    (
        action("{emit_event: {type: points_earned}}"),
        "t.yaml:5: rule 'a': `actions`: `type` cannot be 'points_earned', which only",
    ),
    (action("{emit_event: {type: decision_made}}"), "t.yaml:5: rule 'a': `actions`: `type` cannot be 'decision_made'"),
    (action("{emit_event: {type: threadline.x}}"), "t.yaml:5: rule 'a': `actions`: `type` cannot be 'threadline.x'"),
    (
        action("{tag: {tag: '${event.propertis.x}'}}"),
        "t.yaml:5: rule 'a': `actions`: ${event.propertis.x}: an event has type, source",
    ),
    (action("{tag: {tag: '${}'}}"), "t.yaml:5: rule 'a': `actions`: ${}: a field is a path"),
    (action("{tag: {tag: " + "x" * 1_001 + "}}"), "t.yaml:5: rule 'a': `actions`: a text has at most 1000 characters"),
    (
        action("{emit_event: {type: x, properties: {n: 18446744073709551616}}}"),
        "t.yaml:5: rule 'a': `actions`: a number has 64 bits",
    ),
    (
        "rules:\n  a:\n    conditions:\n      all:\n        - {field: traits.country, not_equals: no}",
        "t.yaml:5: YAML reads no as false; write false, or put 'no' in quotes",
    ),
    (
        action("{emit_event: {type: x, properties: {n: .nan}}}"),
        "t.yaml:2: rule 'a': nan is not a number that JSON can hold",
    ),
    (
        action("{store_decision: {result: a}}\n      - {store_decision: {result: b}}"),
        "t.yaml:6: rule 'a': `actions`: a rule stores one decision; put further parameters into the first",
    ),
    (
        "rules:\n  a: {conditions: {field: tags, in: [" + ", ".join(["'" + "x" * 900 + "'"] * 80) + "]}}",
        "t.yaml:2: rule 'a': the rule has 72,",
    ),
    ("rule_sets: {s: {events: [x]}}", "t.yaml:1: rule set 's' needs `rules`: ids of rules"),
    (
        "rule_sets: {s: {rules: [x], events: []}}",
        "t.yaml:1: rule set 's': `events` must be a list of 1 to 200, and it is empty",
    ),
    (GOOD + "  S: {events: [x], rules: [a]}", "t.yaml:5: 'S' is not a valid rule set name"),
    (GOOD + "  t: {events: [x, x], rules: [a]}", "t.yaml:5: rule set 't': `events`: 'x' is listed twice; keep one"),
    (
        GOOD + "  t: {events: [threadline.x], rules: [a]}",
        "t.yaml:5: rule set 't': `events`: 'threadline.x' is Threadline's own",
    ),
    (
        GOOD + "  t: {events: [7], rules: [a]}",
        "t.yaml:5: rule set 't': `events[0]` must be text of 1 to 200 characters; write it in quotes",
    ),
    (GOOD + "  t: {events: [x], rules: [A]}", "t.yaml:5: rule set 't': `rules[0]` must be the name of a rule, of"),
    (
        GOOD + "  t: {events: [x], rules: [a], policy: some}",
        "t.yaml:5: rule set 't': `policy` cannot be 'some'; choose from all, first",
    ),
    (
        GOOD + "  t: {events: [x], rules: [a], record: some}",
        "t.yaml:5: rule set 't': `record` cannot be 'some'; choose from all, matched",
    ),
    (
        GOOD + "  t: {events: [x], rules: [a], historical: 1}",
        "t.yaml:5: rule set 't': `historical` must be true or false",
    ),
    (GOOD + "  t: {events: [x], rules: [a], polcy: all}", "t.yaml:5: rule set 't': unknown key 'polcy'; did you mean"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_mistakes_are_named_where_they_stand(text: str, message: str) -> None:
    found = problems(text)
    assert any(each.startswith(message) for each in found), found


def test_a_rule_that_stands_in_two_files_is_refused() -> None:
    definitions = Definitions(
        [("one.yaml", GOOD), ("two.yaml", "\n\nrules: {a: {conditions: {field: tags, exists: true}}}")]
    )
    read_rules(definitions)
    with pytest.raises(InvalidDefinition, match=r"two.yaml:3: rule 'a' is already declared at one.yaml:2; keep one"):
        definitions.refuse()


def test_what_nothing_will_ever_tell_is_refused_in_conditions_and_in_placeholders() -> None:
    for text in (
        "rules: {a: {conditions: {field: features.monetary, exists: true}}}",
        "rules: {a: {conditions: {field: tags, exists: true}, actions: [{tag: {tag: '${features.monetary}'}}]}}",
    ):
        with pytest.raises(InvalidDefinition, match=r"t.yaml:1: rule 'a': features has no 'monetary'; did you mean"):
            Catalogue(discover(definitions=Definitions([("t.yaml", text)])), rules())


def test_json_says_where_a_mistake_is() -> None:
    conditions = {"all": [{"field": "tags", "contain": "x"}]}
    with pytest.raises(
        InvalidDefinition, match=re.escape("rule.conditions.all[0].contain: unknown operator 'contain'")
    ):
        rule_of_json("a", {"conditions": conditions})
    with pytest.raises(InvalidDefinition, match=re.escape("rule.actions[1].tag.tag: `tag` takes a text")):
        rule_of_json("a", {"conditions": {"field": "tags", "exists": True}, "actions": [GOOD_TAG, {"tag": {"tag": 7}}]})
    with pytest.raises(InvalidDefinition, match=re.escape("rule_set.events[0]: must be text")):
        set_of_json("s", {"events": [7], "rules": ["a"]})


def test_json_nested_beyond_any_depth_is_refused() -> None:
    conditions: dict[str, Any] = HAS_TAGS
    for _ in range(10_000):
        conditions = {"not": conditions}
    with pytest.raises(InvalidDefinition, match="levels deep"):
        rule_of_json("a", {"conditions": conditions})


def test_the_content_of_a_rule_reads_as_the_same_rule() -> None:
    value = {
        "version": 3,
        "name": "n",
        "description": "d",
        "priority": -5,
        "conditions": {"any": [{"field": ["memory", "a.b"], "in": [1, "x"]}, {"not": HAS_TAGS}]},
        "actions": [{"StoreDecision": {"result": "x", "deep": {"a": ["${traits.x}"]}}}, {"tag": {"tag": "v"}}],
        "effective_from": "2026-03-01",
        "effective_until": "2026-03-02T10:00:00+02:00",
    }
    one = rule_of_json("a", value)
    again = {**one.content}
    assert again.pop("id") == "a"
    assert rule_of_json("a", again).canonical == one.canonical
    assert one.content["effective_until"] == "2026-03-02T08:00:00.000000Z"
    assert list(one.content["actions"][0]) == ["store_decision"]


def test_every_action_has_its_name_of_old() -> None:
    assert set(SYNONYMS.values()) == set(KINDS)
    assert {
        "StoreDecision",
        "SetValue",
        "EmitEvent",
        "AwardPoints",
        "Tag",
        "Untag",
        "EnterJourney",
        "ExitJourney",
        "SendNotification",
        "CallWebhook",
        "LogEvent",
    } == set(SYNONYMS)


# --- the schema for editors ---------------------------------------------------------------------

SCHEMA = jsonschema_rs.Draft202012Validator(schema([RULES_SECTION, SETS_SECTION]))
PAGE = (Path(__file__).parents[2] / "docs" / "rules.md").read_text(encoding="utf-8")
(SHOWN,) = re.findall(r"```yaml\n(rules:\n.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("text", [SHOWN, GOOD, action("{StoreDecision: {result: reject, more: [1]}}")])
def test_what_is_right_fits_the_schema(text: str) -> None:
    assert list(SCHEMA.iter_errors(yaml.safe_load(text))) == []


@pytest.mark.parametrize(
    "text",
    [
        "rules: {A b: {}}",
        "rules: {a: 7}",
        rule("prority: 7"),
        rule("version: 0"),
        rule("priority: 1.5"),
        rule("actions: {}"),
        action("tag"),
        action("{tags: {tag: x}}"),
        action("{tag: {tga: x}}"),
        action("{tag: {}}"),
        action("{set_value: {value: 1}}"),
        action("{set_value: {trait: a, fact: b, value: 1}}"),
        "rule_sets: {s: {events: [x]}}",
        GOOD + "  t: {events: [x], rules: [a], policy: some}",
        GOOD + "  t: {events: [x], rules: [a], polcy: all}",
    ],
)
def test_what_is_wrong_does_not_fit_it(text: str) -> None:
    assert list(SCHEMA.iter_errors(yaml.safe_load(text))) != []


# --- what is remembered -------------------------------------------------------------------------


def opened(store: Store, text: str, now: int = 0) -> Engine:
    found = discover(definitions=Definitions([("t.yaml", text)]))
    return Engine(store, Catalogue(found, rules()), lambda: now)


def version(number: int, equals: str = "x") -> str:
    return GOOD.replace("a: {", f"a: {{version: {number}, ").replace("equals: x", f"equals: {equals}")


def test_a_version_never_changes_once_it_was_seen() -> None:
    store = MemoryStore()
    opened(store, version(1))
    opened(store, version(1))
    with pytest.raises(InvalidDefinition, match=r"t.yaml:2: version 1 of 'a' has changed since it was first seen"):
        opened(store, version(1, "y"))
    opened(store, version(2, "y"))
    with pytest.raises(InvalidDefinition, match="raise its number"):
        opened(store, version(1, "y"))
    opened(store, version(1))


def test_which_version_was_declared_when_is_remembered() -> None:
    store = MemoryStore()
    for now, text in enumerate((version(1), version(1), version(2), "", version(1)), start=1):
        opened(store, text, now)
    assert DefinitionHistory(store).transitions("rules", "a") == [(1, 1), (3, 2), (4, 0), (5, 1)]
    content: Any = DefinitionHistory(store).content("rules", "a", 2)
    assert b'"version":2' in content
    assert DefinitionHistory(store).content("rules", "a", 3) is None


def test_definitions_without_rules_write_nothing() -> None:
    store = MemoryStore()
    opened(store, "")
    assert "declared" not in store.tables()
    assert Asked().engine.store.query("declared", "rules") == []


def test_an_engine_that_refuses_its_definitions_releases_the_store(tmp_path: Path) -> None:
    for number, equals in ((1, "x"), (1, "y"), (1, "x")):
        (tmp_path / "threadline.yaml").write_text(version(number, equals))
        with (
            pytest.raises(InvalidDefinition, match="has changed") if equals == "y" else nullcontext(),
            closing(open_engine(tmp_path / "x.db")),
        ):
            pass
