"""Renders operations as routes: parameters from path, query and body, scopes checked, results as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from functools import cache, partial
from typing import Any, cast, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.context import Caller, Context
from threadline.engine.credentials import Credential
from threadline.engine.engine import Engine
from threadline.engine.interpreter import gc_deferred
from threadline.kernel.errors import EventRejected, Forbidden, InvalidValue, MalformedBody
from threadline.kernel.event import Event, Receipt
from threadline.kernel.event_limits import too_deep
from threadline.kernel.limits import JSON_DEPTH_MAX, REQUEST_BYTES_MAX
from threadline.kernel.operation import Intake, Operation
from threadline.surfaces.http.answers.download import downloaded
from threadline.surfaces.http.answers.in_flight import read_body, without_mark
from threadline.surfaces.http.answers.metrics import Metrics
from threadline.surfaces.http.answers.revalidation import revalidated
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.access import Access, client_host
from threadline.surfaces.http.events.rate import Charge, RateLimits, merged
from threadline.surfaces.lanes import Lanes
from threadline.surfaces.operation_calls import STALE_HEADER, convert, field_names, run, shown, stale_note
from threadline.surfaces.row_formats import MEDIA_TYPES, Format, Rendered, accepted, rendered, rows_of
from threadline.wire.message import depth, depth_bound, read_array

QUERY_FIELDS_MAX = 2_000
"""More than the longest list that an operation takes, so that a longer one is refused for its own bound."""
_NOT_PARAMETERS = frozenset({"access_token"})


class Operations:
    """All operations that HTTP shows. They run beside the event loop, because any of them may read much."""

    def __init__(self, engine: Engine, access: Access, limits: RateLimits, metrics: Metrics, lanes: Lanes) -> None:
        self._engine = engine
        self._metrics = metrics
        self._access = access
        self._limits = limits
        self._lanes = lanes

    def routes(self) -> Iterator[Route]:
        """One route for each operation."""
        for operation in shown(self._engine.catalogue.operations, "http").values():
            many = many_valued(operation.params)
            yield Route(operation.method, operation.path, partial(self._answer, operation, many))

    async def _answer(
        self, operation: Operation, many: frozenset[str], request: Request, names: Mapping[str, str]
    ) -> Response:
        credential = await self._access.token(request, operation.scope)
        in_query = read_query(request.scope["query_string"], many)
        form = _form(operation, in_query, request.headers.get("accept", ""))
        values: dict[str, Any]
        if operation.method == "POST":
            if in_query:
                raise InvalidValue(
                    f"parameters of a POST belong in the body, not in the query: {next(iter(in_query))!r}"
                )
            member = operation.intake.member if operation.intake is not None else ""
            values = read_object(await read_body(request, REQUEST_BYTES_MAX, known=True), member)
        else:
            values = in_query
        key = request.headers.get("idempotency-key")
        if key and "request" in field_names(operation):
            values.setdefault("request", key)
        params = _params(operation, values, names, credential)
        caller = Caller(credential.name, "token", "http")
        context = Context(
            self._engine, credential.workspace, self._engine.recorder.now(), credential.name, True, caller
        )
        if operation.media_type:
            return await self._stream(operation, context, params)
        charge = await self._charge(operation.intake, context, params, credential, client_host(request))
        work = partial(_work, operation, context, params, charge.refused, form)
        lane = operation.work(params)
        # Waiting for a thread is part of reading; what may write must not wait for itself.
        with self._engine.recorder.readers.reading() if operation.method == "GET" else nullcontext():
            try:
                receipts, answer, stale = await self._lanes.run(lane, work)
            except Exception:
                charge.settle(None)
                raise
        if receipts is not None:
            charge.settle(receipts)
            counts = Counter(receipt.status for receipt in receipts)
            self._metrics.count_events(
                credential.workspace,
                credential.name,
                accepted=counts["accepted"],
                duplicates=counts["duplicate"],
                conflicts=counts["conflict"],
                rejected=counts["rejected"],
            )
        headers = {"cache-control": "no-store"}  # what is known of people belongs in no cache
        if stale:
            headers[STALE_HEADER] = stale
        if answer.next and operation.method == "GET":
            following = {name: value for name, value in in_query.items() if name != "cursor"}
            headers["link"] = f'<?{urlencode({**following, "format": form, "cursor": answer.next}, True)}>; rel="next"'
        if operation.revalidated:
            return revalidated(request, answer.body, operation.status, headers, MEDIA_TYPES[form])
        return Response(answer.body, operation.status, headers, MEDIA_TYPES[form])

    async def _stream(self, operation: Operation, context: Context, params: Any) -> Response:
        """The result in pieces, each made when the one before it has left."""
        with self._engine.recorder.readers.reading():
            # What goes wrong before the first piece is a problem document; later the connection breaks off.
            begin = partial(run, operation, context, params)
            return await downloaded(self._lanes, operation.work(params), begin, operation)

    async def _charge(
        self, intake: Intake | None, context: Context, params: Any, credential: Credential, host: str
    ) -> Charge:
        """What a call is charged for the events that it brings."""
        if intake is None or not self._limits.concern(credential):
            return Charge({})
        given = await self._lanes.run("write", lambda: intake.events(context, params))
        events = {index: item for index, item in enumerate(given) if isinstance(item, Event)}
        checked = await self._lanes.run("write", lambda: self._engine.recorder.check(events.values()), is_begun=True)
        if intake.member:
            charge = await self._limits.charge(checked, credential, host, rejected=len(given) - len(events))
            return charge.at(list(events))
        await self._limits.charge_person(checked, credential)
        return Charge({})


def _work(
    operation: Operation, context: Context, params: Any, refused: Mapping[int, Receipt], form: Format
) -> tuple[list[Receipt] | None, Rendered, str]:
    """The receipts, where the operation takes events in, the answer, and what it relies on that is older than the
    definitions in force. ``refused`` are the events left out."""
    # Until the answer is written and its parts are dropped, which is here.
    with gc_deferred():
        intake = operation.intake
        if refused and intake is not None and intake.without is not None:
            params = intake.without(params, refused)
        result = run(operation, context, params)
        receipts: list[Receipt] | None = None
        stale = ""
        if intake is None or intake.receipts is None or intake.result is None:
            stale = stale_note(operation, context, params) if operation.relies_on else ""
        else:
            receipts = intake.receipts(result)
            if refused:
                receipts = merged(receipts, refused)
                result = intake.result(receipts)
        return receipts, Rendered(msgspec.json.encode(result)) if form == "json" else rendered(result, form), stale


def _form(operation: Operation, in_query: dict[str, Any], accept: str) -> Format:
    """The form in which a list is wanted, by Accept or by ``format``, which is taken out of the query."""
    if rows_of(operation.result) is None:
        return "json"
    wanted = in_query.pop("format", None) if operation.method != "POST" else None
    if wanted is None:
        return accepted(accept)
    if wanted not in MEDIA_TYPES:
        raise InvalidValue(f"format: {wanted[:64]!r} is not one of {', '.join(MEDIA_TYPES)}")
    return cast(Format, wanted)


def _params(operation: Operation, values: Mapping[str, Any], names: Mapping[str, str], credential: Credential) -> Any:
    """What is asked, if whoever asks may; ``names`` come from the path."""
    if twice := names.keys() & values.keys():
        raise InvalidValue(f"{min(twice)!r} is already given in the path")
    params = convert(operation, {**values, **names}, strict=operation.method == "POST")
    if (reason := operation.guarded(params)) and not credential.allows("admin"):
        raise Forbidden(f"this token lacks the scope 'admin': {reason}")
    return params


@cache
def many_valued(params: type) -> frozenset[str]:
    """The parameters that are lists: in a query they may be given more than once."""
    hints = get_type_hints(params)
    return frozenset(name for name, hint in hints.items() if _is_list(hint))


def _is_list(hint: Any) -> bool:
    return any((get_origin(arg) or arg) in (list, tuple, set, frozenset) for arg in (hint, *get_args(hint)))


def read_query(query: bytes, many: frozenset[str]) -> dict[str, Any]:
    """Parameters of a query by name. Raises `InvalidValue` for what is not UTF-8 or is given twice."""
    if not query:
        return {}
    try:
        pairs = parse_qsl(query.decode("ascii"), True, errors="strict", max_num_fields=QUERY_FIELDS_MAX)
    except ValueError:
        raise InvalidValue(
            f"the query is not UTF-8 in percent form, or has more than {QUERY_FIELDS_MAX} fields"
        ) from None
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in _NOT_PARAMETERS:
            continue
        if name in many:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise InvalidValue(f"{name[:64]!r} is given twice")
        else:
            values[name] = value
    return values


def read_object(body: bytes, member: str = "") -> dict[str, Any]:
    """The JSON object of a body; an empty body is an empty object.

    Of a list by the name ``member`` each element is read by itself where the whole cannot be. Raises `MalformedBody`
    and, for what is nested too deeply, `EventRejected`.
    """
    body = without_mark(body)
    if not body:
        return {}
    try:
        if depth_bound(body) > JSON_DEPTH_MAX and depth(body) > JSON_DEPTH_MAX:
            raise too_deep()
        try:
            value = msgspec.json.decode(body)
        except (ValueError, RecursionError) as error:
            raise MalformedBody(f"the body is not JSON: {error}") from None
        if not isinstance(value, dict):
            raise MalformedBody("the body must be a JSON object with the parameters")
        return value
    except (EventRejected, MalformedBody) as error:
        if not member:
            raise
        try:
            elements, rest = read_array(body, member.encode())
            return {**read_object(rest), member: elements}
        except (EventRejected, MalformedBody):
            raise error from None
