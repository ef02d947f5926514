"""The address of GraphQL, by the specification "GraphQL over HTTP"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidValue, MalformedBody, Unauthorized
from threadline.kernel.extra import from_source
from threadline.kernel.limits import GRAPHQL_BYTES_MAX
from threadline.settings import Settings
from threadline.surfaces.http.addresses.appaction_body import SOURCE
from threadline.surfaces.http.addresses.operations import read_object, read_query
from threadline.surfaces.http.answers.in_flight import read_body
from threadline.surfaces.http.answers.problem import NotInstalled, UnsupportedFormat
from threadline.surfaces.http.answers.revalidation import revalidated
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.access import TOKEN_HINT, Access
from threadline.surfaces.http.callers.web_user import WebUsers
from threadline.surfaces.lanes import Lanes
from threadline.surfaces.operation_calls import STALE_HEADER

if TYPE_CHECKING:
    from threadline.surfaces.graphql.execution import Answer, Documents
    from threadline.surfaces.graphql.loading import Caller

PATH = "/graphql"
JSON = "application/json"
GRAPHQL_JSON = "application/graphql-response+json"
_FIELDS = frozenset({"query", "variables", "operationName", "extensions"})


class GraphQL:
    """Answers documents beside the event loop. The schema is made when it is first asked for."""

    def __init__(self, engine: Engine, settings: Settings, access: Access, users: WebUsers, lanes: Lanes) -> None:
        self._engine = engine
        self._settings = settings
        self._access = access
        self._users = users
        self._lanes = lanes
        self._documents: Documents | None = None
        self._making = Lock()

    def routes(self) -> Iterator[Route]:
        """Both are for pages of any origin, because users bring their own token."""
        yield Route("GET", PATH, self.get, open_to_browsers=True)
        yield Route("POST", PATH, self.post, open_to_browsers=True)

    async def get(self, request: Request, names: Mapping[str, str]) -> Response:
        """Answer a document in the query: an answer that a client may store."""
        caller = await self._caller(request)
        if len(request.scope["query_string"]) > GRAPHQL_BYTES_MAX:
            raise InvalidValue(f"the query has more than {GRAPHQL_BYTES_MAX} bytes; send it by POST")
        asked: dict[str, Any] = read_query(request.scope["query_string"], frozenset())
        for name in ("variables", "extensions"):
            if asked.get(name):
                asked[name] = read_object(asked[name].encode())
        return await self._answer(request, asked, caller)

    async def post(self, request: Request, names: Mapping[str, str]) -> Response:
        """Answer a document in the body."""
        caller = await self._caller(request)
        kind, _, rest = request.headers.get("content-type", "").partition(";")
        charset = rest.lower().replace(" ", "").replace('"', "").removeprefix("charset=")
        if kind.strip().lower() != JSON or charset not in ("", "utf-8"):
            raise UnsupportedFormat("send JSON: Content-Type: application/json")
        body = await read_body(request, GRAPHQL_BYTES_MAX, known=True)
        if not body:
            raise MalformedBody('the body is empty; send {"query": "…"}')
        return await self._answer(request, read_object(body), caller)

    async def _caller(self, request: Request) -> Callable[[], Caller]:
        """Who asks; made into what GraphQL knows where that is loaded."""
        refused: Unauthorized | None = None
        if self._users.may_name(request):
            try:
                user = await self._users.user(request)
            except Unauthorized as error:
                refused = error  # a token of the settings may look like a web token
            else:
                workspace = self._settings.workspace
                return lambda: _caller(workspace, SOURCE, lambda scope: scope == "read", user.id)
        try:
            credential = await self._access.token(request, "read")
        except Unauthorized:
            raise refused or Unauthorized("send `Authorization: Bearer <token>`", hint=TOKEN_HINT) from None
        return lambda: _caller(credential.workspace, credential.name, credential.allows, "")

    async def _answer(self, request: Request, asked: Mapping[str, Any], caller: Callable[[], Caller]) -> Response:
        _refuse(asked)

        def work() -> Answer:
            documents = self._made()
            from threadline.surfaces.graphql.execution import Request as Asked

            extensions = asked.get("extensions") or {}
            persisted = extensions.get("persistedQuery")
            sha256 = persisted.get("sha256Hash") if isinstance(persisted, dict) else None
            question = Asked(
                asked.get("query") or "",
                asked.get("variables") or {},
                asked.get("operationName") or None,
                sha256 if isinstance(sha256, str) else "",
            )
            if not question.query and not question.sha256:
                raise InvalidValue("`query` is missing", param="query")
            return documents.answer(question, caller())

        with self._engine.recorder.readers.reading():
            answer = await self._lanes.run("page", work)
        media_type = _media_type(request.headers.get("accept", ""))
        # A client that knows the media type of GraphQL can tell our answer from that of a proxy by it, others cannot.
        status = 400 if not answer.ran and media_type == GRAPHQL_JSON else 200
        shown: dict[str, Any] = {"errors": answer.errors} if answer.errors else {}
        if answer.ran:
            shown["data"] = answer.data
        body = msgspec.json.encode(shown)
        media_type = f"{media_type}; charset=utf-8"
        headers = {STALE_HEADER: answer.stale} if answer.stale else {}
        if request.method != "POST" and not answer.errors:
            return revalidated(request, body, status, headers, media_type)
        return Response(body, status, {**headers, "cache-control": "no-store"}, media_type)

    def _made(self) -> Documents:
        with self._making:
            if self._documents is None:
                try:
                    from threadline.surfaces.graphql.execution import Documents
                except ImportError as error:
                    raise NotInstalled(
                        f"GraphQL needs a library that is not there: {error.name}",
                        hint=from_source("graphql"),
                    ) from None
                self._documents = Documents(self._engine, introspection=self._settings.graphql_introspection)
            return self._documents


def _caller(workspace: str, source: str, allows: Callable[[str], bool], user: str) -> Caller:
    from threadline.surfaces.graphql.loading import Caller

    return Caller(workspace, source, allows, user)


def _refuse(asked: Mapping[str, Any]) -> None:
    """Raise `InvalidValue` for what is not a request of GraphQL."""
    for name in asked:
        if name not in _FIELDS:
            raise InvalidValue(f"{name[:64]!r} is not a part of a request; there are {', '.join(sorted(_FIELDS))}")
    for name, kind, wanted in (
        ("query", str, "text"),
        ("operationName", str, "text"),
        ("variables", dict, "an object"),
        ("extensions", dict, "an object"),
    ):
        if asked.get(name) is not None and not isinstance(asked[name], kind):
            raise InvalidValue(f"{name}: must be {wanted}", param=name)


def _media_type(accept: str) -> str:
    for part in accept.split(","):
        kind = part.partition(";")[0].strip().lower()
        if kind in (GRAPHQL_JSON, "application/*"):
            return GRAPHQL_JSON
        if kind in (JSON, "*/*"):
            return JSON
    return JSON


_OBJECT = {"type": ["object", "null"]}
_BODY = {
    "type": "object",
    "required": ["query"],
    "additionalProperties": False,
    "properties": {
        "query": {"type": "string", "minLength": 1},
        "operationName": {"type": ["string", "null"]},
        "variables": _OBJECT,
        "extensions": _OBJECT,
    },
}
_ANSWER = {
    "type": "object",
    "properties": {"data": _OBJECT, "errors": {"type": "array", "items": {"type": "object"}, "minItems": 1}},
}
_RESPONSES = {"200": {"description": "It was run, or `errors` says why not.", "content": {JSON: {"schema": _ANSWER}}}}


def _described(method: str, more: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": f"graphql_{method}",
        "summary": f"Answer a document of GraphQL by {method.upper()}.",
        "description": "Needs the scope `read`; the web token of a user reads that user's alerts.",
        "tags": ["graphql"],
        "security": [{"token": []}, {"userToken": []}],
        "responses": dict(_RESPONSES),
        **more,
    }


def _in_query(name: str, description: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": "query",
        "required": False,
        "schema": {"type": "string"},
        "description": description,
    } | more


_EXAMPLE = "{ segments { name } }"
GRAPHQL_PATHS: dict[str, Any] = {
    PATH: {
        "post": _described(
            "post",
            {
                "requestBody": {"required": True, "content": {JSON: {"schema": _BODY, "example": {"query": _EXAMPLE}}}},
                "x-without": ("404", "409", "429"),
            },
        ),
        "get": _described(
            "get",
            {
                "parameters": [
                    _in_query("query", "The document.", required=True, schema={"type": "string", "minLength": 1})
                    | {"example": _EXAMPLE},
                    _in_query("operationName", "Which of its operations."),
                    _in_query("variables", "A JSON object.", schema={"enum": ["{}"]}),
                    _in_query("extensions", "A JSON object.", schema={"enum": ["{}"]}),
                ],
                "x-without": ("404", "409", "413", "415", "429"),
            },
        ),
    }
}
"""Path -> method -> description."""
