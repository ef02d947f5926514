"""A decorated function is the operation: what surfaces render is read off the function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from threadline.kernel.operation import (
    Context,
    Group,
    NoParams,
    Operation,
    Options,
    Params,
    operation,
    shaped_operation,
)

CUPS = Group("cups", "Cups of tea.")
NOBODY: Any = SimpleNamespace(workspace="default")


class CupParams(Params, kw_only=True):
    """Which cup."""

    id: str


class Cup(msgspec.Struct):
    """A cup."""

    id: str
    where: str


@operation("GET /v1/cups/{id}", CUPS, example=CupParams(id="7"))
def show(context: Context, params: CupParams) -> Cup:
    """Show a cup,
    wherever it stands.

    This paragraph is for who reads the code.
    """
    return Cup(params.id, context.workspace)


def test_a_function_gives_its_operation_name_summary_parameters_and_result() -> None:
    assert type(show) is Operation
    assert (show.name, show.verb, show.method, show.path) == ("cups_show", "show", "GET", "/v1/cups/{id}")
    assert show.summary == "Show a cup, wherever it stands."
    assert (show.params, show.result, show.example) == (CupParams, Cup, CupParams(id="7"))
    assert show(NOBODY, CupParams(id="7")) == show.run(NOBODY, CupParams(id="7")) == Cup("7", "default")


def test_an_underscore_that_avoids_a_word_of_the_language_is_no_part_of_the_name() -> None:
    def list_(context: Context, params: NoParams) -> Cup:
        """List the cups."""
        raise NotImplementedError

    assert operation("GET /v1/cups", CUPS)(list_).name == "cups_list"
    assert operation("GET /v1/cups")(list_).name == "list"


def test_the_result_of_a_stream_is_bytes() -> None:
    @operation("GET /v1/cups", CUPS, media_type="text/plain")
    def pour(context: Context, params: NoParams) -> Iterator[bytes]:
        """Pour tea."""
        yield b"tea"

    assert pour.result is bytes
    assert list(pour(NOBODY, NoParams())) == [b"tea"]


def test_an_operation_that_definitions_shape_is_one_for_each_of_them() -> None:
    @shaped_operation("GET /v1/cups", CUPS)
    def first(cups: list[str], saucer: str, context: Context, params: NoParams) -> Cup:
        """Show the first cup."""
        return Cup(cups[0], saucer)

    large, small = first(["large"], "red"), first(["small"], "blue")
    assert (large.name, large.params, large.result) == ("cups_first", NoParams, Cup)
    assert [each(NOBODY, NoParams()) for each in (large, small)] == [Cup("large", "red"), Cup("small", "blue")]
    assert large.run.__module__ == __name__


@pytest.mark.parametrize("route", ["/v1/cups", "GET", "get /v1/cups", "PATCH /v1/cups", "GET v1/cups"])
def test_a_route_that_is_none_is_refused_by_the_name_of_its_operation(route: str) -> None:
    with pytest.raises(ValueError, match=r"operation 'cups_show': .* is no route; expected for instance 'GET /v1/"):
        operation(route, CUPS)(show.run)


def test_a_function_without_docstring_or_types_is_refused_by_name() -> None:
    def silent(context: Context, params: NoParams) -> Cup:
        raise NotImplementedError

    def untyped(context, params: NoParams):  # type: ignore[no-untyped-def]
        """Show a cup."""

    for function in (silent, untyped):
        with pytest.raises(ValueError, match=f"'cups_{function.__name__}': expected a docstring, and annotations of"):
            operation("GET /v1/cups", CUPS)(function)


def test_a_parameter_that_is_not_declared_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `colour`"):
        msgspec.convert({"id": "7", "colour": "red"}, CupParams)


def test_options_are_the_fields_that_a_function_does_not_say() -> None:
    said = {"name", "summary", "params", "result", "run", "method", "path", "group"}
    assert Options.__annotations__.keys() | said == {field.name for field in fields(Operation)}
    assert not Options.__annotations__.keys() & said
