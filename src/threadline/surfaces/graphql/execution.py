"""Runs documents: read, measured, validated, executed; errors in the words of the operations."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from typing import Any, NamedTuple

from graphql import GraphQLError, GraphQLSchema
from strawberry.extensions import SchemaExtension

from threadline.engine.engine import Engine
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.limits import GRAPHQL_DOCUMENTS_MAX
from threadline.surfaces.graphql import schema
from threadline.surfaces.graphql.loading import Caller, Loading
from threadline.surfaces.graphql.measuring import Document, measure

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
    stale: str = ""
    """What the answer relies on that is older than the definitions in force, and what to do."""


class _Prepared(SchemaExtension):
    """Hands over the document that was read and measured, and remembers that it is valid."""

    def on_parse(self) -> Iterator[None]:
        """Nothing is read twice."""
        self.execution_context.graphql_document = self._document.node
        yield

    def on_validate(self) -> Iterator[None]:
        """A document that is known to be valid stays so: the schema never changes."""
        if self._document.is_valid:
            self.execution_context.pre_execution_errors = []
        yield
        self._document.is_valid = not self.execution_context.pre_execution_errors

    @property
    def _document(self) -> Document:
        document: Document = self.execution_context.context.document
        return document


class Documents:
    """Answers documents by one engine. Thread-safe: each request runs on a loop of its own, in the thread that asks."""

    def __init__(self, engine: Engine, *, introspection: bool) -> None:
        self._engine = engine
        self._introspection = introspection
        self._schema = schema.made(engine.catalogue.operations, [_Prepared])
        self._valid: OrderedDict[str, Document] = OrderedDict()
        self._lock = Lock()

    def answer(self, request: Request, caller: Caller) -> Answer:
        """Run a document; blocks."""
        try:
            document = self._read(request)
            document.refuse_ambiguity(request.operation_name)
            measure(self._graph, document.node, request.variables)
            if document.introspects and not self._introspection:
                raise GraphQLError("this server does not show its schema; see the setting graphql_introspection")
        except GraphQLError as error:
            return Answer(None, [_formatted(error)], ran=False)
        loading = Loading(self._engine, caller, document)
        result = asyncio.run(
            self._schema.execute(
                document.text,
                variable_values=request.variables,
                operation_name=request.operation_name,
                context_value=loading,
            )
        )
        if document.is_valid:
            self._remember(document)
        ran = result.data is not None or any(error.path for error in result.errors or ())
        errors = [_formatted(error) for error in result.errors or ()]
        return Answer(result.data, errors, ran, "; ".join(sorted(loading.stale)))

    @property
    def _graph(self) -> GraphQLSchema:
        return self._schema._schema  # noqa: SLF001 — Strawberry gives no other way to the schema that it executes

    def _read(self, request: Request) -> Document:
        if not request.query:
            document = self._remembered(request.sha256)
            if document is None:
                raise GraphQLError(PERSISTED_UNKNOWN, extensions={"code": "PERSISTED_QUERY_NOT_FOUND"})
            return document
        sha256 = _hash(request.query)
        if request.sha256 not in ("", sha256):
            raise GraphQLError("the hash is not that of the query")
        return self._remembered(sha256) or Document(request.query)

    def _remembered(self, sha256: str) -> Document | None:
        with self._lock:
            document = self._valid.get(sha256)
            if document is not None:
                self._valid.move_to_end(sha256)
            return document

    def _remember(self, document: Document) -> None:
        with self._lock:
            self._valid[_hash(document.text)] = document
            while len(self._valid) > GRAPHQL_DOCUMENTS_MAX:
                self._valid.popitem(last=False)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _formatted(error: GraphQLError) -> dict[str, Any]:
    """An error with the code, the hint and the parameter that HTTP would tell; of a fault no more than that it is."""
    shown: dict[str, Any] = dict(error.formatted)
    shown["message"] = error.message[:MESSAGE_LENGTH_MAX]
    cause = error.original_error
    if isinstance(cause, ThreadlineError):
        problem = {"code": cause.code, "status": cause.status, "hint": cause.hint, "param": cause.param}
        shown["extensions"] = {key: value for key, value in problem.items() if value}
        if cause.is_inside:
            log.warning("%s: %s", ".".join(map(str, error.path or ())), cause)
            shown["message"] = f"{cause.code}; the server's log tells more"
            shown["extensions"].pop("hint", None)
    elif cause is not None and error.path and not isinstance(cause, GraphQLError):
        log.error("%s failed", ".".join(map(str, error.path)), exc_info=cause)
        shown["message"] = "something went wrong on the server; its log tells more"
        shown["extensions"] = {"code": "internal", "status": 500}
    return shown
