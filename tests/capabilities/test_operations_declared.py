"""Every operation is declared so that each surface can render it."""

from __future__ import annotations

import re
import sys

import msgspec
import pytest

from tests.capabilities.asked import Asked
from tests.each import each_of
from threadline.kernel.operation import Operation, ShapedOperation

OPERATIONS = [
    each for each in Asked().engine.catalogue.operations if each.run.__module__.startswith("threadline.capab")
]
every = each_of(OPERATIONS, lambda operation: operation.name)


@every
def test_parameters_of_the_path_are_fields(operation: Operation) -> None:
    fields = {field.name for field in msgspec.structs.fields(operation.params)}
    assert set(re.findall(r"{(\w+)}", operation.path)) <= fields


@every
def test_schemas_of_params_and_result_render(operation: Operation) -> None:
    schemas, components = msgspec.json.schema_components([operation.params, operation.result])
    assert len(schemas) == 2
    assert components


@every
def test_unknown_parameters_are_refused(operation: Operation) -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"surprise": 1}, operation.params)


@every
def test_parameters_of_a_query_are_plain(operation: Operation) -> None:
    """What travels in a query is text, number or switch, or texts under one name told again; objects have no form."""
    if operation.method == "GET":
        schemas, components = msgspec.json.schema_components([operation.params])
        (name,) = (schema["$ref"].rsplit("/", 1)[1] for schema in schemas)
        for field, schema in components[name]["properties"].items():
            forms = schema.get("anyOf", [schema])
            kinds = {each["items"].get("type") if each.get("type") == "array" else each.get("type") for each in forms}
            assert kinds <= {"string", "integer", "number", "boolean", "null", None}, field


@every
def test_the_example_is_a_call_that_can_be_made(operation: Operation) -> None:
    if operation.example is not None:
        plain = msgspec.to_builtins(operation.example)
        assert msgspec.to_builtins(msgspec.convert(plain, operation.params)) == plain


@every
def test_summaries_are_sentences(operation: Operation) -> None:
    assert operation.summary[0].isupper()
    assert operation.summary.endswith(".")
    assert operation.params.__doc__
    assert operation.result.__doc__


def test_no_two_operations_share_an_address() -> None:
    addresses = [(each.method, re.sub(r"{\w+}", "{}", each.path)) for each in Asked().engine.catalogue.operations]
    assert len(addresses) == len(set(addresses))


def test_every_operation_that_definitions_shape_is_made_by_a_capability() -> None:
    made = {(each.method, each.path) for each in Asked().engine.catalogue.operations}
    shaped = {
        (value.route, module.__name__)
        for module in list(sys.modules.values())
        if module.__name__.startswith("threadline.capabilities.")
        for value in vars(module).values()
        if isinstance(value, ShapedOperation)
    }
    assert shaped
    assert {each for each in shaped if tuple(each[0].split()) not in made} == set()
