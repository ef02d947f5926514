"""Runs documents: read, measured, validated, executed; errors in the words of the operations."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Any, NamedTuple

from graphql import DocumentNode, GraphQLError, GraphQLSchema, OperationDefinitionNode, parse
from strawberry.extensions import SchemaExtension

from threadline.engine.engine import Engine
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.limits import GRAPHQL_DOCUMENTS_KEPT, GRAPHQL_TOKENS_MAX
from threadline.surfaces.graphql import schema
from threadline.surfaces.graphql.loading import Asker, Loading
from threadline.surfaces.graphql.measuring import introspects, measure

log = logging.getLogger("threadline.graphql")

MESSAGE_LENGTH_MAX = 500
"""A message repeats what was sent, which may be long."""
PERSISTED_UNKNOWN = "PersistedQueryNotFound"
"""What clients look for, to send the document with its hash."""


class Request(NamedTuple):
    """What was asked."""

    query: str
    variables: dict[str, Any]
    operation_name: str | None
    sha256: str
    """The hash of a persisted query; empty for none."""


class Answer(NamedTuple):
    """What is answered; ``ran`` is whether the document was good enough to be executed."""

    data: dict[str, Any] | None
    errors: list[dict[str, Any]]
    ran: bool


class _Known:
    """A document that was read, and whether it is known to be valid."""

    def __init__(self, document: DocumentNode) -> None:
        self.document = document
        self.is_valid = False
        self.introspects = introspects(document)


class _Loaded(Loading):
    """The reads of a request, with the document that asks for them."""

    known: _Known


class _Prepared(SchemaExtension):
    """Hands the document over that was read and measured, and remembers that it is valid."""

    def on_parse(self) -> Iterator[None]:
        """Nothing is read twice."""
        self.execution_context.graphql_document = self._known.document
        yield

    def on_validate(self) -> Iterator[None]:
        """A document that is known to be valid stays so: the schema never changes."""
        if self._known.is_valid:
            self.execution_context.pre_execution_errors = []
        yield
        self._known.is_valid = not self.execution_context.pre_execution_errors

    @property
    def _known(self) -> _Known:
        known: _Known = self.execution_context.context.known
        return known


class Documents:
    """Answers documents by one engine. Thread-safe: each request runs on a loop of its own, in the thread that asks."""

    def __init__(self, engine: Engine, *, introspection: bool) -> None:
        self._engine = engine
        self._introspection = introspection
        self._schema = schema.made(engine.catalogue.operations, [_Prepared])
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._lock = Lock()

    @property
    def described(self) -> str:
        """The schema in GraphQL's own language."""
        return self._schema.as_str()

    def answer(self, request: Request, asker: Asker) -> Answer:
        """Run a document; blocks."""
        try:
            text, known = self._read(request)
            _chosen(known.document, request.operation_name)
            measure(self._graph, known.document, request.variables)
            if known.introspects and not self._introspection:
                raise GraphQLError("this server does not show its schema; see the setting graphql_introspection")
        except GraphQLError as error:
            return Answer(None, [dict(error.formatted)], ran=False)
        loading = _Loaded(self._engine, asker)
        loading.known = known
        result = asyncio.run(
            self._schema.execute(
                text, variable_values=request.variables, context_value=loading, operation_name=request.operation_name
            )
        )
        if known.is_valid:
            self._keep(text, known)
        ran = result.data is not None or any(each.path for each in result.errors or ())
        return Answer(result.data, [_formatted(each) for each in result.errors or ()], ran)

    @property
    def _graph(self) -> GraphQLSchema:
        return self._schema._schema  # noqa: SLF001 — Strawberry gives no other way to the schema that it executes

    def _read(self, request: Request) -> tuple[str, _Known]:
        text = request.query
        if request.sha256:
            if text and hashlib.sha256(text.encode()).hexdigest() != request.sha256:
                raise GraphQLError("the hash is not that of the query")
            if not text and (kept := self._kept(request.sha256)) is None:
                raise GraphQLError(PERSISTED_UNKNOWN, extensions={"code": "PERSISTED_QUERY_NOT_FOUND"})
            if not text:
                assert kept is not None
                return kept.document.loc.source.body if kept.document.loc else "", kept
        if (kept := self._kept(_hash(text))) is not None:
            return text, kept
        try:
            return text, _Known(parse(text, max_tokens=GRAPHQL_TOKENS_MAX))
        except RecursionError:
            raise GraphQLError("the document is nested too deeply") from None

    def _kept(self, sha256: str) -> _Known | None:
        with self._lock:
            known = self._known.get(sha256)
            if known is not None:
                self._known.move_to_end(sha256)
            return known

    def _keep(self, text: str, known: _Known) -> None:
        with self._lock:
            self._known[_hash(text)] = known
            while len(self._known) > GRAPHQL_DOCUMENTS_KEPT:
                self._known.popitem(last=False)


def _chosen(document: DocumentNode, name: str | None) -> None:
    """Raise `GraphQLError` unless the document has one operation to run, or the one that is named."""
    found = [each for each in document.definitions if isinstance(each, OperationDefinitionNode)]
    named = [each for each in found if name is None or (each.name is not None and each.name.value == name)]
    if len(named) != 1:
        wrong = f"has no operation {name[:64]!r}" if name else f"has {len(found)} operations; name one of them"
        raise GraphQLError(f"the document {wrong}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _formatted(error: GraphQLError) -> dict[str, Any]:
    """An error with the code, the hint and the parameter that HTTP would tell; of a fault no more than that it is."""
    told: dict[str, Any] = dict(error.formatted)
    told["message"] = error.message[:MESSAGE_LENGTH_MAX]
    cause = error.original_error
    if isinstance(cause, ThreadlineError):
        problem = {"code": cause.code, "status": cause.status, "hint": cause.hint, "param": cause.param}
        told["extensions"] = {key: value for key, value in problem.items() if value}
        if cause.status >= 500:
            log.warning("%s: %s", ".".join(map(str, error.path or ())), cause)
            told["message"] = f"{cause.code}; the server's log tells more"
            told["extensions"].pop("hint", None)
    elif cause is not None and error.path and not isinstance(cause, GraphQLError):
        log.error("%s failed", ".".join(map(str, error.path)), exc_info=cause)
        told["message"] = "something went wrong on the server; its log tells more"
        told["extensions"] = {"code": "internal", "status": 500}
    return told
