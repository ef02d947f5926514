"""Routing by the raw path: literal segments before parameters, methods told, HEAD and OPTIONS implied."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from starlette.requests import Request
from starlette.responses import Response

from threadline.kernel.errors import InvalidValue, NotFound
from threadline.surfaces.http.answers.problem import MethodNotAllowed
from threadline.surfaces.http.answers.routing import Route, Router


async def handler(request: Request, names: Mapping[str, str]) -> Response:
    return Response()


ROUTER = Router(
    Route(method, path, handler)
    for method, path in (
        ("GET", "/"),
        ("GET", "/v1/people"),
        ("GET", "/v1/people/{id}"),
        ("DELETE", "/v1/people/{id}"),
        ("GET", "/v1/people/best"),
        ("POST", "/v1/people/{id}/merge"),
    )
)


@pytest.mark.parametrize(
    ("method", "path", "found", "names"),
    [
        ("GET", b"/", "/", {}),
        ("GET", b"/v1/people", "/v1/people", {}),
        ("GET", b"/v1/people/", "/v1/people", {}),
        ("HEAD", b"/v1/people", "/v1/people", {}),
        ("GET", b"/v1/people/best", "/v1/people/best", {}),
        ("DELETE", b"/v1/people/best", "/v1/people/{id}", {"id": "best"}),
        ("GET", b"/v1/people/user_id:1", "/v1/people/{id}", {"id": "user_id:1"}),
        ("GET", b"/v1/people/a%2Fb%20c", "/v1/people/{id}", {"id": "a/b c"}),
        ("GET", b"/v1/people/%C3%BC", "/v1/people/{id}", {"id": "ü"}),
        ("POST", b"/v1/people/x/merge", "/v1/people/{id}/merge", {"id": "x"}),
        ("OPTIONS", b"/v1/people/x/merge", "/v1/people/{id}/merge", {"id": "x"}),
    ],
)
def test_found(method: str, path: bytes, found: str, names: dict[str, str]) -> None:
    route, parameters = ROUTER.find(method, path)
    assert (route.path, parameters) == (found, names)


@pytest.mark.parametrize("path", [b"", b"/v1", b"/v1/people/x/y", b"/v1/people//merge", b"/V1/people", b"x"])
def test_not_found(path: bytes) -> None:
    with pytest.raises(NotFound):
        ROUTER.find("GET", path)


def test_another_method_is_told_which_there_are() -> None:
    with pytest.raises(MethodNotAllowed) as raised:
        ROUTER.find("POST", b"/v1/people/x")
    assert raised.value.allowed == "DELETE, GET, HEAD, OPTIONS"
    assert ROUTER.methods("/v1/people/{id}") == "DELETE, GET, HEAD, OPTIONS"


def test_a_path_that_is_not_utf8_is_no_value() -> None:
    with pytest.raises(InvalidValue):
        ROUTER.find("GET", b"/v1/people/%ff")
