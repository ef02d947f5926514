"""The addresses of the console: pages, their parts and live rows, actions, sign-in and the files that pages load."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qs, quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from threadline.capabilities.reach.mail.pictures.routes import FOLDER as PICTURES
from threadline.engine.accounts import Session
from threadline.engine.engine import Engine
from threadline.engine.interpreter import PAGE_SECONDS_MAX
from threadline.kernel.errors import Forbidden, NotFound, ThreadlineError, Unauthorized
from threadline.kernel.operation import Operation
from threadline.kernel.screen import Fresh, Part, Screen
from threadline.surfaces.console import alert_form, broadcast_form, editing, journey_panel, template_panel
from threadline.surfaces.console.actions import Pairs, as_fields, read_fields, read_form, result_of
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.frame import PAGE_HEADERS, document_headers, render, static
from threadline.surfaces.console.naming import with_names
from threadline.surfaces.console.navigation import navigation
from threadline.surfaces.console.screens import screens_of
from threadline.surfaces.http.addresses.counts import Counts
from threadline.surfaces.http.addresses.sign_in import SignIn
from threadline.surfaces.http.answers.browser import redirect, refuse_foreign, refused, theme
from threadline.surfaces.http.answers.download import downloaded
from threadline.surfaces.http.answers.in_flight import read_body
from threadline.surfaces.http.answers.problem import server_of
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.lanes import Lanes
from threadline.surfaces.operation_calls import shown
from threadline.surfaces.row_formats import MEDIA_TYPES
from threadline.wire.multipart import is_multipart, read_multipart

T = TypeVar("T")

FORM_BYTES_MAX = 4 * 1024 * 1024
LIVE_LOOK_SECONDS = 0.2
"""How often a live list is looked at: what is committed is seen within 300 ms."""
LIVE_LOOKS_MAX = 3_000
"""After ten minutes the browser connects again, so that nobody who has lost their rights looks on."""
RATE_LOOKS = 25
"""The rate that is told is that of so many looks: five seconds."""
RATE_EVERY = 5


class Console:
    """Serves the screens to whoever is signed in."""

    def __init__(self, engine: Engine, sign_in: SignIn, lanes: Lanes, counts: Counts) -> None:
        self._engine = engine
        self._lanes = lanes
        self._counts = counts
        self.session = sign_in.session
        """Who is signed in; None: nobody is."""
        self._operations: Mapping[str, Operation] = shown(engine.catalogue.operations, "http")

    def routes(self) -> Iterator[Route]:
        """Every screen, and what all of them need."""
        yield Route("GET", "/assets/{name}", self._asset)
        yield Route("POST", "/do/{operation}", self._act)
        for screen in screens_of(self._engine.catalogue):
            yield Route("GET", screen.path, partial(self._show, screen))
            if screen.is_form:
                yield Route("POST", screen.path, partial(self._show, screen))

    # --- pages ------------------------------------------------------------------------------------

    async def _show(self, screen: Screen, request: Request, names: Mapping[str, str]) -> Response:
        session = await self.session(request)
        if session is None:
            here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return redirect(f"/sign-in?next={quote(here, safe='')}")
        query = request.scope["query_string"]
        if request.method == "POST":
            query = await self._form_query(session, request) + b"&" + query
        asking = self._asking(session, names, query)
        if "live" in asking.query and screen.live is not None:
            return self._stream(screen, asking, request)
        part = asking.query.get("part", "")
        if part in screen.parts and screen.parts[part].download:
            return await self._download(screen.parts[part], asking, request)
        with self._engine.recorder.readers.reading(PAGE_SECONDS_MAX):
            return await self._run(partial(self._page, screen, asking, part, request))

    async def _download(self, part: Part, asking: Asking, request: Request) -> Response:
        operation = self._operations[part.download]
        begin = partial(asking.pieces, operation.name, **part.load(asking))
        try:
            with self._engine.recorder.readers.reading():
                return await downloaded(self._lanes, "question", begin, operation)
        except ThreadlineError as error:
            return refused(error, request)

    async def _form_query(self, session: Session, request: Request) -> bytes:
        """The fields of a form as a query."""
        refuse_foreign(request)
        body = await read_body(request, FORM_BYTES_MAX, known=True)
        if not secrets.compare_digest(read_fields(body).get("_csrf", ""), session.csrf):
            raise Forbidden("the form does not belong to this session; load the page again")
        return body

    def _asking(self, session: Session, names: Mapping[str, str], query: bytes) -> Asking:
        queries = parse_qs(query.decode("utf-8", "replace"))
        last = {name: values[-1] for name, values in queries.items()}
        asking = Asking(self._engine, self._operations, session, self._engine.now(), names, last, queries)
        asking.uploads = self._counts.uploads
        return asking

    def _page(self, screen: Screen, asking: Asking, part: str, request: Request) -> Response:
        status, template, is_part = 200, screen.template, part in screen.parts
        context: Mapping[str, Any]
        try:
            if not asking.may(screen.operation):
                raise Forbidden(f"your role, {asking.session.role}, does not include this screen")
            chosen = screen.parts[part] if is_part else Part(screen.template, screen.load)
            template, context = chosen.template, chosen.load(asking)
            if chosen.file:
                return Response(context["document"], headers=_file_headers(chosen.file))
            if chosen.is_document:
                address = self._engine.public_address.base
                return Response(context["document"], headers=document_headers(address and address + PICTURES))
        except ThreadlineError as error:
            status, template = error.status, "problem_part.html" if is_part else "problem.html"
            context = {"problem": str(error), "hint": error.hint, "code": error.code, "status": error.status}
        frame = self._frame(screen, asking, request)
        if not is_part:
            frame["navigation"] = navigation(asking, frame["current"])
        return Response(
            render(template, {**frame, **with_names(asking, context)}, asking.words), status, headers=PAGE_HEADERS
        )

    def _frame(self, screen: Screen, asking: Asking, request: Request) -> dict[str, Any]:
        server = server_of(request)
        return {
            "screen": screen,
            "session": asking.session,
            "csrf": asking.session.csrf,
            "current": screen.within or screen.name,
            "server": server,
            "here": request.url.path,
            "query": asking.query,
            "now": asking.now,
            "theme": theme(request),
            "zone": asking.zone,
            "stale": sorted(asking.stale),
            "may": {name: True for name in self._operations if asking.may(name)},
            "calls": [
                {"name": call.operation.name, "http": call.http(server), "cli": call.command(), "python": call.python()}
                for call in asking.calls
            ],
        }

    # --- live -------------------------------------------------------------------------------------

    def _stream(self, screen: Screen, asking: Asking, request: Request) -> Response:
        cursor = request.headers.get("last-event-id", "") or asking.query.get("after", "")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._rows(screen, asking, cursor), 200, headers, "text/event-stream")

    async def _rows(self, screen: Screen, asking: Asking, cursor: str) -> AsyncIterator[bytes]:
        live = screen.live
        assert live is not None
        if not asking.may(screen.operation):
            return

        def look() -> tuple[str, Fresh]:
            asking.now = self._engine.now()
            asking.calls.clear()
            fresh = live.load(asking, cursor)
            context = with_names(asking, {"items": fresh.items, "now": asking.now, "query": asking.query})
            return (render(live.template, context, asking.words) if fresh.items else ""), fresh

        clock = asyncio.get_running_loop().time
        counts = deque([(clock(), 0)], maxlen=RATE_LOOKS)
        for number in range(LIVE_LOOKS_MAX):
            if self._counts.in_flight.is_ending:
                return
            try:
                markup, fresh = await self._run(look)
            except ThreadlineError:  # such as a store that is away: the browser connects again
                return
            cursor = fresh.cursor
            counts.append((clock(), fresh.seen))
            if markup:
                lines = "".join(f"data: {line}\n" for line in markup.splitlines() if line.strip())
                yield f"id: {cursor}\n{lines}\n".encode()
            if number % RATE_EVERY == 0:
                began, first = counts[0]
                rate = (sum(count for _, count in counts) - first) / max(clock() - began, LIVE_LOOK_SECONDS)
                yield f"event: rate\ndata: {rate:.1f}\n\n".encode()
            await asyncio.sleep(LIVE_LOOK_SECONDS)

    # --- actions ----------------------------------------------------------------------------------

    async def _act(self, request: Request, names: Mapping[str, str]) -> Response:
        """Run an operation with what a form says. A script gets the outcome as JSON, a plain form is sent back."""
        session = await self.session(request)
        if session is None:
            raise Unauthorized("your session has ended; sign in again", hint="/sign-in")
        refuse_foreign(request)
        body = await read_body(request, FORM_BYTES_MAX, known=True)
        if is_multipart(content_type := request.headers.get("content-type", "")):
            body = as_fields(read_multipart(body, content_type))
        if not secrets.compare_digest(read_fields(body).get("_csrf", ""), session.csrf):
            raise Forbidden("the form does not belong to this session; load the page again")
        operation = self._operations.get(names["operation"])
        if operation is None:
            raise NotFound(f"there is no operation {names['operation']!r}")
        asking = self._asking(session, {}, b"")
        wants_json = "application/json" in request.headers.get("accept", "")
        back = "/"
        try:
            form = await self._run(partial(read_form, body, partial(_completed, asking)))
            back = form.back
            result = await self._run(partial(result_of, asking, operation, form))
        except ThreadlineError as error:
            if wants_json:
                problem = {"problem": str(error), "hint": error.hint, "param": getattr(error, "param", "")}
                return Response(msgspec.json.encode(problem), error.status, media_type="application/json")
            return refused(error, request, back)
        if wants_json:
            done = {"result": result, "go": form.destination(result)}
            return Response(msgspec.json.encode(done), media_type="application/json")
        return redirect(form.destination(result))

    # --- files ------------------------------------------------------------------------------------

    async def _asset(self, request: Request, names: Mapping[str, str]) -> Response:
        asset = static(names["name"])
        if asset is None:
            raise NotFound("there is no such file")
        content, media_type, mark = asset
        # The address has the mark in it: another content is another address.
        lasting = "public, max-age=31536000, immutable" if request.query_params.get("v") == mark else "no-cache"
        headers = {"content-type": media_type, "cache-control": lasting, "x-content-type-options": "nosniff"}
        return Response(content, headers=headers)

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._lanes.run("page", work)


def _file_headers(name: str) -> dict[str, str]:
    """What is sent with a table of people: it is saved under this name, and nowhere kept on the way."""
    return {
        "content-type": MEDIA_TYPES["csv"],
        "content-disposition": f'attachment; filename="{name}"',
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }


def _completed(asking: Asking, pairs: Pairs) -> Pairs:
    """The fields of a form that is sent to an operation, with those of its parts made into the parameters they say."""
    for form in (editing, journey_panel, template_panel, broadcast_form, alert_form):
        pairs = form.completed(asking, pairs)
    return pairs
