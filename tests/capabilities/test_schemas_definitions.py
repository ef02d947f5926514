"""What users declare of schemas: what each mistake is told, what may stand there, and what an editor sees of it."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from threadline.capabilities.foundation.definitions import Definitions, schema
from threadline.capabilities.foundation.schemas import validating
from threadline.capabilities.foundation.schemas.definition import SECTION, read_schemas
from threadline.capabilities.foundation.schemas.keywords import DIALECT, FORMATS, INNER, PLAIN
from threadline.kernel.errors import EventRejected, InvalidDefinition
from threadline.kernel.event import Event
from threadline.kernel.limits import EVENT_SCHEMAS_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NODES_MAX
from threadline.kernel.requirement import Requirement


def declared(*texts: str) -> dict[str, Requirement]:
    definitions = Definitions((f"{chr(97 + n)}.yaml", text) for n, text in enumerate(texts))
    found = read_schemas(definitions)
    definitions.refuse_unknown()
    return {each.name: each for each in found}


def of_properties(text: str) -> Requirement:
    return declared(f"event_schemas: {{page: {text}}}")["page"]


def problem(requirement: Requirement, **properties: Any) -> str:
    try:
        requirement.check(Event(type="page", identifiers=(), occurred_at=0, key="k", properties=properties))
    except EventRejected as error:
        return str(error)
    return ""


PLACED = "event schema 'page': "
REMOTE = "a schema refers to its own parts only, such as `$ref: '#/$defs/money'`; nothing is fetched"
LINEAR = "look-around and back-references are not taken, nor what compiles to more than a megabyte"
UNTOLD = (
    "is not a valid event schema name; a type of events has 1 to 200 characters and does not begin with threadline."
)
TYPED = "is not a type; choose from array, boolean, integer, null, number, object, string"

# Each case: what is written under `event_schemas`, and the whole message.
MISTAKES: dict[str, tuple[str, str]] = {
    "a schema that is none": ("  page: [n]", "2: event schema 'page' must be a mapping, such as `{required: [total]}`"),
    "a schema of nothing": ("  page:", "2: event schema 'page' must be a mapping, such as `{required: [total]}`"),
    "a type of Threadline's own": ("  threadline.merged: {}", f"2: 'threadline.merged' {UNTOLD}"),
    "a type without a name": ("  '': {}", f"2: '' {UNTOLD}"),
    "a keyword with a slip": (
        "  page:\n    requird:\n      - n",
        f"3: {PLACED}unknown keyword 'requird'; did you mean 'required'? (what is your own begins with `x-`)",
    ),
    "a keyword inside": (
        "  page:\n    properties:\n      n:\n        minumum: 3",
        f"5: {PLACED}unknown keyword 'minumum'; did you mean 'minimum'? (what is your own begins with `x-`)",
    ),
    "a name inside": ("  page: {properties: {n: {$id: x}}}", f"2: {PLACED}`$id` stands in the outermost schema only"),
    "another draft": (
        "  page: {$schema: 'http://json-schema.org/draft-07/schema#'}",
        f"2: {PLACED}a schema is read as JSON Schema 2020-12; write `$schema: {DIALECT}`, or nothing",
    ),
    "properties that are no object": (
        "  page: {type: string}",
        f"2: {PLACED}the properties of an event are an object; write `type: object`",
    ),
    "a type with a slip": (
        "  page: {properties: {n: {type: strng}}}",
        f"2: {PLACED}'strng' is not a type; did you mean 'string'?",
    ),
    "a type of types": ("  page: {properties: {n: {type: [[]]}}}", f"2: {PLACED}'[]' {TYPED}"),
    "a type that is a number": ("  page: {properties: {n: {type: 3, enum: [1]}}}", f"2: {PLACED}'3' {TYPED}"),
    "a format with a slip": (
        "  page: {properties: {n: {format: datetime}}}",
        f"2: {PLACED}'datetime' is not a format that is checked; did you mean 'date-time'?",
    ),
    "a switch for required": (
        "  page: {properties: {n: {required: true}}}",
        f"2: {PLACED}`required` is a list of names and stands beside `properties`, such as `required: [total]`",
    ),
    "a limit in words": (
        "  page:\n    properties:\n      n:\n        minimum: '3'",
        f'5: {PLACED}`minimum`: "3" is not of type "number"',
    ),
    "a list that is none": ("  page: {allOf: 3}", f'2: {PLACED}`allOf`: 3 is not of type "array"'),
    "whether it is personal in words": (
        "  page: {properties: {n: {x-personal: maybe}}}",
        f"2: {PLACED}`x-personal` is true or false: whether the property is personal",
    ),
    "a property that is none": (
        "  page:\n    properties:\n      n: 3",
        f"4: {PLACED}a schema must be a mapping, such as `{{type: number}}`",
    ),
    "a text that YAML reads as a switch": (
        "  page: {properties: {n: {type: string, enum: [DE, NO]}}}",
        f"2: {PLACED}`enum`: false is no string; what is meant as a text needs quotes here",
    ),
    "a number in the place of a text": (
        "  page: {properties: {n: {type: [string, 'null'], const: 1.0}}}",
        f"2: {PLACED}`const`: 1.0 is no string or null; what is meant as a text needs quotes here",
    ),
    "a number that is none": ("  page: {const: .nan}", f"2: {PLACED}nan is not a number that JSON can hold"),
    "no regular expression": (
        "  page: {properties: {n: {pattern: '('}}}",
        f'2: {PLACED}`pattern`: "(" is not a "regex"; {LINEAR}',
    ),
    "look-around": (
        "  page:\n    properties:\n      n:\n        pattern: '^(?=a)'",
        f'5: {PLACED}`pattern`: "^(?=a)" is not a "regex"; {LINEAR}',
    ),
    "a back-reference in a name": (
        "  page:\n    patternProperties:\n      '(a)\\1': {}",
        f'4: {PLACED}`(a)\\1`: "(a)\\\\1" is not a "regex"; {LINEAR}',
    ),
    "a pattern that is too large": (
        "  page: {properties: {n: {pattern: '(a{1000}){1000}'}}}",
        f'2: {PLACED}`pattern`: "(a{{1000}}){{1000}}" is not a "regex"; {LINEAR}',
    ),
    "a schema elsewhere": ("  page: {$ref: 'https://example.com/x.json'}", f"2: {PLACED}{REMOTE}"),
    "a schema in a file": ("  page: {properties: {n: {$ref: 'file:///etc/passwd'}}}", f"2: {PLACED}{REMOTE}"),
    "a schema beside": ("  page: {properties: {n: {$ref: money.json}}}", f"2: {PLACED}{REMOTE}"),
    "an anchor": ("  page: {properties: {n: {$ref: '#money'}}}", f"2: {PLACED}{REMOTE}"),
    "a reference to nothing": (
        "  page: {properties: {n: {$ref: '#/$defs/money'}}}",
        f"2: {PLACED}nothing stands at '#/$defs/money'",
    ),
    "a reference beyond a list": (
        "  page: {allOf: [{}, {$ref: '#/allOf/2'}]}",
        f"2: {PLACED}nothing stands at '#/allOf/2'",
    ),
    "a reference to no schema": (
        "  page:\n    required: [n]\n    allOf: [{$ref: '#/required'}]",
        f"3: {PLACED}a schema must be a mapping, such as `{{type: number}}`",
    ),
    "a schema that is its own": (
        "  page: {$ref: '#'}",
        f"2: {PLACED}'#' leads back to where it stands, without end; write out its levels",
    ),
    "a tree": (
        "  page:\n    $defs:\n      node:\n        properties:\n          child: {$ref: '#/$defs/node'}",
        f"6: {PLACED}'#/$defs/node' leads back to where it stands, without end; write out its levels",
    ),
    "a circle": (
        "  page: {$defs: {a: {not: {$ref: '#/$defs/b'}}, b: {items: {$ref: '#/$defs/a'}}}}",
        f"2: {PLACED}'#/$defs/a' leads back to where it stands, without end; write out its levels",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_line_and_its_cure(mistake: str) -> None:
    text, expected = MISTAKES[mistake]
    with pytest.raises(InvalidDefinition) as caught:
        declared(f"event_schemas:\n{text}")
    assert str(caught.value) == f"a.yaml:{expected}"


def test_several_mistakes_are_told_together() -> None:
    text = "event_schemas:\n  page: {properties: {a: {typ: string}, b: {type: strin}}}\n  click: {required: n}"
    with pytest.raises(InvalidDefinition) as caught:
        declared(text)
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["2", "2", "3"]


def test_a_type_has_one_schema_in_all_files() -> None:
    text = "event_schemas: {page: {}}"
    with pytest.raises(InvalidDefinition, match=r"b.yaml:1: event schema 'page' is already declared at a.yaml:1"):
        declared(text, text)
    assert declared(text, "event_schemas: {click: {}}").keys() == {"page", "click"}


@pytest.fixture
def asked() -> Iterator[tuple[str, list[str]]]:
    """The address of a schema, and the addresses that somebody has asked for."""
    paths: list[str] = []

    class Schemas(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paths.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Schemas)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/x.json", paths
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    "keyword", ["$ref", "$id", "$schema", "$dynamicRef", "$recursiveRef", "$anchor", "$vocabulary"]
)
def test_nothing_is_ever_fetched(keyword: str, asked: tuple[str, list[str]], tmp_path: Path) -> None:
    address, paths = asked
    (tmp_path / "x.json").write_text("true")
    for value in (address, (tmp_path / "x.json").as_uri(), "x.json", "//example.com/x.json", "urn:x"):
        with pytest.raises(InvalidDefinition):
            of_properties(f"{{properties: {{n: {{'{keyword}': '{value}'}}}}}}")
        if keyword == "$ref":
            with pytest.raises(validating.Unfit):
                validating.compile_schema({keyword: value}, branches=False)
        if keyword != "$id":
            with pytest.raises(InvalidDefinition):
                of_properties(f"{{'{keyword}': '{value}'}}")
    assert paths == []


def test_a_name_elsewhere_leads_no_reference_astray() -> None:
    text = "{$id: 'https://example.com/page.json', properties: {n: {$ref: '#/$defs/n'}}, $defs: {n: {type: number}}}"
    assert problem(of_properties(text), n="1") == 'properties.n: the value is not of type "number"'


def test_a_schema_may_be_large_but_not_without_bound() -> None:
    names = ", ".join(f"n{n}: {{}}" for n in range(SCHEMA_NODES_MAX))
    deep = "{not: " * (SCHEMA_DEPTH_MAX + 1) + "{}" + "}" * (SCHEMA_DEPTH_MAX + 1)
    for text in (f"{{properties: {{{names}}}}}", deep):
        with pytest.raises(InvalidDefinition, match=r"larger or more deeply nested than any may be"):
            of_properties(text)


def chained(levels: int, part: str) -> str:
    """A schema of so many parts, each made of the next one as ``part`` says."""
    parts = ", ".join(f"d{n}: {part.replace('NEXT', f'#/$defs/d{n + 1}')}" for n in range(levels))
    return f"{{$ref: '#/$defs/d0', $defs: {{{parts}, d{levels}: {{}}}}}}"


def test_references_multiply_within_a_bound() -> None:
    with pytest.raises(
        InvalidDefinition, match=r"its references make [\d,]+ schemas of it, at most 10,000 are allowed; use fewer"
    ):
        of_properties(chained(40, "{allOf: [{$ref: 'NEXT'}, {$ref: 'NEXT'}]}"))
    with pytest.raises(InvalidDefinition, match="64 levels deep"):
        of_properties(chained(SCHEMA_DEPTH_MAX + 5, "{$ref: 'NEXT'}"))


def test_there_are_only_so_many() -> None:
    many = "\n".join(f"  type{n}: {{}}" for n in range(EVENT_SCHEMAS_MAX + 1))
    with pytest.raises(InvalidDefinition, match="1,001 event schemas are declared, at most 1,000 are allowed"):
        declared(f"event_schemas:\n{many}")


def test_without_the_driver_a_schema_is_refused_and_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    assert declared("event_schemas: {}", "{}") == {}
    with pytest.raises(InvalidDefinition) as caught:
        declared("\nevent_schemas:\n  page: {}\n  click: {}")
    needed = "needs jsonschema-rs; install its extra in the folder of Threadline's source: pip install '.[schemas]'"
    assert str(caught.value) == f"a.yaml:3: event schema 'page' {needed}\na.yaml:4: event schema 'click' {needed}"


# --- what is told of an event -------------------------------------------------------------------------

# Each case: a schema, properties, and what is told; nothing if they fit.
CASES: dict[str, tuple[str, dict[str, Any], str]] = {
    "fits": ("{required: [n], properties: {n: {type: integer}}}", {"n": 1}, ""),
    "is missing": ("{required: [n]}", {}, 'properties: "n" is a required property'),
    "is of another type": (
        "{properties: {n: {type: number}}}",
        {"n": "12"},
        'properties.n: the value is not of type "number"',
    ),
    "null is a type": ("{properties: {n: {type: [string, 'null']}}}", {"n": None}, ""),
    "stands in a list": (
        "{properties: {l: {items: {properties: {n: {maximum: 3}}}}}}",
        {"l": [{"n": 1}, {"n": 4}]},
        "properties.l[1].n: the value is greater than the maximum of 3",
    ),
    "is not listed": (
        "{properties: {n: {enum: [EUR, USD]}}}",
        {"n": "s3cret"},
        'properties.n: the value is not one of "EUR" or "USD"',
    ),
    "is one name too many": (
        "{properties: {m: {}}, additionalProperties: false}",
        {"n": 1},
        "properties: Additional properties are not allowed ('n' was unexpected)",
    ),
    "has a format": ("{properties: {n: {format: date}}}", {"n": "2026-02-28"}, ""),
    "has not its format": (
        "{properties: {n: {format: date}}}",
        {"n": "2026-02-30"},
        'properties.n: the value is not a "date"',
    ),
    "a date may stand unquoted": ("{properties: {n: {const: 2026-01-01}}}", {"n": "2026-01-01"}, ""),
    "has not its pattern": (
        "{properties: {n: {pattern: '^[0-9]+$'}}}",
        {"n": "12x"},
        'properties.n: the value does not match "^[0-9]+$"',
    ),
    "is told by reference": (
        "{properties: {n: {$ref: '#/$defs/a~1b%20c'}}, $defs: {'a/b c': {type: number}}}",
        {"n": "1"},
        'properties.n: the value is not of type "number"',
    ),
    "is one of several": (
        "{anyOf: [{required: [a]}, {required: [b]}]}",
        {"c": 1},
        "properties: the value is not valid under any of the schemas listed in the 'anyOf' keyword",
    ),
    "a keyword of one's own": ("{x-owner: shop, properties: {x-n: {type: number}}}", {"x-n": 1}, ""),
    "a property by the name of a keyword": ("{properties: {$ref: {type: number}, requird: {}}}", {"$ref": 1}, ""),
    "what is listed is no schema": ("{enum: [{requird: 1, $ref: x}]}", {"requird": 1, "$ref": "x"}, ""),
    "never": ("{properties: {n: false}}", {"n": 1}, "properties.n: False schema does not allow the value"),
}


@pytest.mark.parametrize("case", CASES)
def test_an_event_is_told_what_is_wrong_and_where(case: str) -> None:
    text, properties, expected = CASES[case]
    assert problem(of_properties(text), **properties) == expected


def test_the_first_problems_are_told_and_how_many_there_are() -> None:
    found = problem(of_properties("{properties: {l: {items: {type: string}}}}"), l=list(range(12)))
    told = "; ".join(f'properties.l[{n}]: the value is not of type "string"' for n in range(5))
    assert found == f"{told}; and 7 more"


def test_of_much_the_first_problem_is_told() -> None:
    plain = of_properties("{required: [c], properties: {l: {items: {type: string}}}}")
    assert problem(plain, c=1, l=list(range(201))) == 'properties.l[0]: the value is not of type "string"'
    branches = of_properties("{anyOf: [{required: [c]}, {required: [d]}]}")
    assert problem(branches, l=list(range(201))) == (
        "properties: they do not fit; of more than 200 values it is not told where"
    )
    assert problem(branches, c=1, l=list(range(201))) == ""


def test_no_value_is_told_and_no_name_is_told_whole() -> None:
    names = "propertyNames: {maxLength: 40}, additionalProperties: {type: 'null'}"
    text = f"{{{names}, properties: {{n: {{type: number, const: 3}}}}}}"
    secret = "4111-1111-1111-1111"
    found = problem(of_properties(text), n=secret, other=[secret], **{"x" * 5_000: {"n": secret}})
    assert secret not in found
    assert found.count(";") >= 3
    assert len(found) < 2_000


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_that_is_named_is_checked(format: str) -> None:
    wrong = "{" if format == "uri-template" else "::\ud7ff ["  # a text that none of the others takes
    assert problem(of_properties(f"{{properties: {{n: {{format: {format}}}}}}}"), n=wrong) == (
        f'properties.n: the value is not a "{format}"'
    )


# --- for editors --------------------------------------------------------------------------------------

EDITOR = jsonschema_rs.Draft202012Validator(schema([SECTION]))
UNSEEN = {
    "no regular expression",
    "look-around",
    "a back-reference in a name",
    "a pattern that is too large",
    "a reference to nothing",
    "a reference beyond a list",
    "a reference to no schema",
    "a schema that is its own",
    "a tree",
    "a circle",
    "a text that YAML reads as a switch",
    "a number in the place of a text",
    "a number that is none",
    "properties that are no object",
}
"""What no schema of schemas can say."""


@pytest.mark.parametrize("mistake", sorted(MISTAKES.keys() - UNSEEN))
def test_an_editor_sees_a_mistake(mistake: str) -> None:
    assert not EDITOR.is_valid(yaml.safe_load(f"event_schemas:\n{MISTAKES[mistake][0]}"))


def test_an_editor_takes_what_is_right() -> None:
    for text, _, _ in CASES.values():
        # Dates are texts to definitions.
        written = json.loads(json.dumps(yaml.safe_load(f"event_schemas: {{page: {text}}}"), default=str))
        assert [error.message for error in EDITOR.iter_errors(written)] == [], text


@pytest.mark.parametrize("keyword", sorted((INNER.keys() | PLAIN.keys()) - {"const", "default"}))
def test_every_keyword_is_one_of_the_draft(keyword: str) -> None:
    def taken(value: Any) -> bool:
        try:
            jsonschema_rs.Draft202012Validator({keyword: value}, offline=True)
        except jsonschema_rs.ValidationError:
            return False
        return True

    # Of a keyword that it does not know it would take anything.
    assert not all(taken(value) for value in ("x", -1, [3], {"n": 3}, None))


def test_the_page_is_true() -> None:
    text = (Path(__file__).parents[2] / "docs/event-schemas.md").read_text(encoding="utf-8")
    [block, shipped] = re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert declared(shipped).keys() == {"purchase_completed", "sentiment_detected", "campaign_engaged"}
    found = declared(block)
    assert found.keys() == {"purchase_completed", "identify"}
    assert all(EDITOR.is_valid(yaml.safe_load(each)) for each in (shipped, block))
    order = {"total": "29.33", "currency": "EUR", "ordered_on": "2026-03-01", "products": [{"sku": "a", "price": 1}]}
    assert problem(found["purchase_completed"], **order) == ""
    for wrong in ({"total": "29,33"}, {"currency": "CHF"}, {"ordered_on": "1.3.26"}, {"products": [{"sku": ""}]}):
        assert problem(found["purchase_completed"], **order | wrong)
    [shown] = re.findall(r"^    (threadline.yaml:.*)$", text, re.MULTILINE)
    with pytest.raises(InvalidDefinition) as caught:
        declared(block.replace("    properties:\n      total", "\n    propertys:\n      total"))
    assert str(caught.value) == shown.replace("threadline.yaml", "a.yaml")
