"""One declaration, several answers: an editor's JSON Schema and the reader refuse and take the same documents."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Set
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from threadline.app import catalogue
from threadline.capabilities.decide.rules.definition import RULES, SETS
from threadline.capabilities.decide.rules.model_reading import MODEL
from threadline.capabilities.foundation.definitions import Definitions, declaring, schema
from threadline.capabilities.foundation.definitions.declaring import Named, Single
from threadline.capabilities.foundation.webhooks.definition import DESTINATIONS
from threadline.capabilities.profile.feature_updates.definition import SECTION as FEATURE_UPDATES
from threadline.capabilities.profile.features.definition import CAMPAIGNS, CURRENCIES, FEATURES
from threadline.capabilities.profile.interests.definition import INTERESTS, read_interests
from threadline.capabilities.profile.leaderboards.definition import LEADERBOARDS
from threadline.capabilities.profile.memory.definition import MEMORY, PERMANENT
from threadline.capabilities.profile.points.definition import POINTS
from threadline.capabilities.profile.segments.definition import SEGMENTS
from threadline.capabilities.profile.streaks.definition import CALENDAR, STREAKS
from threadline.kernel.errors import InvalidDefinition

SECTIONS: dict[str, Named[Any] | Single[Any]] = {
    each.section: each
    for each in (
        CALENDAR,
        CAMPAIGNS,
        CURRENCIES,
        DESTINATIONS,
        FEATURE_UPDATES,
        FEATURES,
        INTERESTS,
        LEADERBOARDS,
        MEMORY,
        POINTS,
        RULES,
        SEGMENTS,
        SETS,
        STREAKS,
    )
}
WHOLE = jsonschema_rs.Draft202012Validator(schema(catalogue().sections))
DOCS = Path(__file__).parents[2] / "docs"


def _shown() -> list[tuple[str, Any]]:
    """What the pages show and what ships, by section."""
    texts = [
        block
        for page in sorted(DOCS.glob("*.md"))
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    ]
    for name in ("features", "memory", "points", "streaks"):
        texts += [
            resources.files(f"threadline.capabilities.profile.{name}").joinpath("shipped.yaml").read_text("utf-8")
        ]
    # Dates are texts to definitions.
    written = [json.loads(json.dumps(yaml.safe_load(text), default=str)) for text in texts]
    shown = [(name, value) for each in written if isinstance(each, dict) for name, value in each.items()]
    for name, value in shown:
        for own in PERMANENT if name == "memory" else ():
            value.pop(own, None)
    return [(name, value) for name, value in shown if name in SECTIONS]


SHOWN = _shown()
JUNK: list[Any] = [None, True, False, -1, 0, 2, 1.5, "", "q", [], ["q"], {}, {"q": 1}, [[]], [{}]]


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for step, each in inner for place in places(each, (*at, step)))]


def changed(value: Any, random: Random, untouched: Set[str] = frozenset()) -> Any:
    """The same document with something in it left out, put in, or replaced; nothing under the keys ``untouched``."""
    value = copy.deepcopy(value)
    *around, last = random.choice([at for at in places([value])[1:] if untouched.isdisjoint(at)])
    inside: Any = [value]
    root = inside
    for step in around:
        inside = inside[step]
    match random.randrange(3), inside[last]:
        case 0, _ if around:
            del inside[last]
        case 1, dict():
            inside[last]["q"] = random.choice(JUNK)
        case _:
            inside[last] = random.choice(JUNK)
    return root[0]


def problems(name: str, value: Any) -> str:
    definitions = Definitions([("t.yaml", yaml.safe_dump({name: value}, allow_unicode=True))])
    section = SECTIONS[name]
    if section is INTERESTS:
        read_interests(definitions)
    elif isinstance(section, Named):
        section.read(definitions)
    else:
        section.read(definitions, None)
    try:
        definitions.refuse()
    except InvalidDefinition as error:
        return str(error)
    return ""


PAGES = {
    "calendar": "streaks",
    "campaigns": "features",
    "currencies": "features",
    "destinations": "webhooks",
    "feature_updates": "features",
    "rule_sets": "rules",
}
"""Section -> the page that tells of it, where that is named otherwise."""


def options(schema: Any) -> set[str]:
    """The keys that a declaration may have, those inside it included."""
    if schema == MODEL.schema:
        return set()  # docs/decision-models.md tells of it
    found = set(schema.get("properties", ())) if isinstance(schema, dict) else set()
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    return found.union(*map(options, inner))


@pytest.mark.parametrize("name", sorted(SECTIONS))
def test_every_option_is_in_its_page(name: str) -> None:
    page = (DOCS / f"{PAGES.get(name, name)}.md").read_text("utf-8")
    told = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`\n]+`|```yaml\n.*?```", page, re.DOTALL))))
    synonyms = {f"{each.title().replace('_', '')}" for each in told}
    assert options(SECTIONS[name].form.schema) - told - synonyms == set()


def test_there_is_something_of_every_section() -> None:
    assert {name for name, _ in SHOWN} == set(SECTIONS)
    for name, value in SHOWN:
        assert WHOLE.is_valid({name: value}), name


@given(st.sampled_from(SHOWN), st.randoms(use_true_random=False), st.integers(1, 3))
def test_what_the_schema_refuses_the_reader_refuses(shown: tuple[str, Any], random: Random, times: int) -> None:
    name, value = shown
    for _ in range(times):
        value = changed(value, random)
    if not WHOLE.is_valid({name: value}):
        assert problems(name, value).startswith("t.yaml:"), value


LANGUAGES = {"when", "where", "conditions", "model", "actions", "url"}
"""Keys under which more is said than a schema can check: fields, expressions, parameters of actions, addresses."""


@given(st.sampled_from(SHOWN), st.randoms(use_true_random=False))
def test_what_the_schema_takes_has_the_right_form(shown: tuple[str, Any], random: Random) -> None:
    name, value = shown
    value = changed(value, random, LANGUAGES)
    with pytest.MonkeyPatch.context() as patched:
        # What fields must be together no schema can say.
        patched.setattr(declaring, "check", lambda made, part: None)
        found = problems(name, value) if WHOLE.is_valid({name: value}) else ""
    # Nor which names ship.
    assert [line for line in found.splitlines() if "does not ship" not in line] == [], value
