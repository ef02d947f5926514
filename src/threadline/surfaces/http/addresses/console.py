"""The addresses of the console: pages, their parts and live rows, actions, sign-in and the files that pages load."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qs, parse_qsl, quote, urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from threadline.engine.accounts import Session
from threadline.engine.engine import Engine
from threadline.engine.reader_priority import PAGE_SECONDS_MAX
from threadline.kernel.errors import Forbidden, NotFound, ThreadlineError, Unauthorized
from threadline.kernel.operation import Operation
from threadline.kernel.screen import Fresh, Part, Screen
from threadline.surfaces.console.actions import local_address, read_fields, read_form, result_of
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.editing import completed
from threadline.surfaces.console.frame import DOCUMENT_HEADERS, PAGE_HEADERS, render, static
from threadline.surfaces.console.naming import with_names
from threadline.surfaces.console.navigation import navigation
from threadline.surfaces.console.screens import screens_of
from threadline.surfaces.console.signing_in import sign_in
from threadline.surfaces.http.addresses.counts import Counts
from threadline.surfaces.http.answers.body import read_body
from threadline.surfaces.http.answers.problem import RateLimited, headers_of, scheme_of, server_of
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.client_address import client_host, limited_name
from threadline.surfaces.lanes import Lanes
from threadline.surfaces.operation_calls import shown

T = TypeVar("T")

COOKIE = "threadline_session"
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

    def __init__(self, engine: Engine, workspace: str, lanes: Lanes, looks: Executor, counts: Counts) -> None:
        self._engine = engine
        self._lanes = lanes
        self._looks = looks
        self._workspace = workspace
        self._counts = counts
        self._operations: Mapping[str, Operation] = shown(engine.catalogue.operations, "http")

    def routes(self) -> Iterator[Route]:
        """Every screen, and what all of them need."""
        yield Route("GET", "/sign-in", self._show_sign_in)
        yield Route("POST", "/sign-in", self._sign_in)
        yield Route("POST", "/sign-out", self._sign_out)
        yield Route("GET", "/assets/{name}", self._asset)
        yield Route("POST", "/do/{operation}", self._act)
        for screen in screens_of(self._engine.catalogue):
            yield Route("GET", screen.path, partial(self._show, screen))
            if screen.is_form:
                yield Route("POST", screen.path, partial(self._show, screen))

    # --- who is there ---------------------------------------------------------------------------

    async def _session(self, request: Request) -> Session | None:
        secret = request.cookies.get(COOKIE, "")
        return await self._look(partial(self._engine.accounts.find, secret)) if secret else None

    async def _show_sign_in(self, request: Request, names: Mapping[str, str]) -> Response:
        if await self._session(request) is not None:
            return _redirect(local_address(request.query_params.get("next", "")))
        return self._sign_in_page(request, request.query_params.get("next"))

    def _sign_in_page(
        self, request: Request, next_: str | None, error: ThreadlineError | None = None, name: str = ""
    ) -> Response:
        problem = "" if error is None else str(error)
        context = {"next": local_address(next_ or ""), "problem": problem, "name": name, "theme": _theme(request)}
        headers = {**PAGE_HEADERS, **({} if error is None else headers_of(error))}
        return Response(render("sign_in.html", context), 200 if error is None else error.status, headers=headers)

    async def _sign_in(self, request: Request, names: Mapping[str, str]) -> Response:
        _refuse_foreign(request)
        form = dict(parse_qsl((await read_body(request, 16 * 1024)).decode("utf-8", "replace")))
        name, secret, address = form.get("name", "").strip(), form.get("password", ""), client_host(request)
        here = limited_name(address)
        failures = self._counts.sign_in_failures
        work = partial(sign_in, self._engine, failures, self._workspace, name, secret if name else secret.strip(), here)
        try:
            if wait := self._counts.sign_ins.wait(here):
                raise RateLimited(f"too many attempts to sign in from here; try again in {wait} s", wait)
            self._counts.sign_ins.charge(here)
            made = await self._lanes.run("sign_in", work)
        except ThreadlineError as error:
            return self._sign_in_page(request, form.get("next"), error, name)
        response = _redirect(local_address(form.get("next", "")))
        # Lax: an address that somebody was sent opens the page; what changes anything is a POST with a secret in it.
        response.set_cookie(COOKIE, made, httponly=True, samesite="lax", path="/", secure=_is_secure(request))
        return response

    async def _sign_out(self, request: Request, names: Mapping[str, str]) -> Response:
        _refuse_foreign(request)
        await self._look(partial(self._engine.accounts.sign_out, request.cookies.get(COOKIE, "")))
        response = _redirect("/sign-in")
        response.delete_cookie(COOKIE, path="/")
        return response

    # --- pages ------------------------------------------------------------------------------------

    async def _show(self, screen: Screen, request: Request, names: Mapping[str, str]) -> Response:
        session = await self._session(request)
        if session is None:
            here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
            return _redirect(f"/sign-in?next={quote(here, safe='')}")
        query = request.scope["query_string"]
        if request.method == "POST":
            query = await self._form_query(session, request) + b"&" + query
        asking = self._asking(session, names, query)
        if "live" in asking.query and screen.live is not None:
            return self._stream(screen, asking, request)
        part = asking.query.get("part", "")
        with self._engine.reading(PAGE_SECONDS_MAX):
            return await self._run(partial(self._page, screen, asking, part, request))

    async def _form_query(self, session: Session, request: Request) -> bytes:
        """The fields of a form as a query."""
        _refuse_foreign(request)
        body = await read_body(request, FORM_BYTES_MAX, known=True)
        if not secrets.compare_digest(read_fields(body).get("_csrf", ""), session.csrf):
            raise Forbidden("the form does not belong to this session; load the page again")
        return body

    def _asking(self, session: Session, names: Mapping[str, str], query: bytes) -> Asking:
        queries = parse_qs(query.decode("utf-8", "replace"))
        last = {name: values[-1] for name, values in queries.items()}
        return Asking(self._engine, self._operations, session, self._engine.now(), names, last, queries)

    def _page(self, screen: Screen, asking: Asking, part: str, request: Request) -> Response:
        status, template, is_part = 200, screen.template, part in screen.parts
        context: Mapping[str, Any]
        try:
            if not asking.may(screen.operation):
                raise Forbidden(f"your role, {asking.session.role}, does not include this screen")
            chosen = screen.parts[part] if is_part else Part(screen.template, screen.load)
            template, context = chosen.template, chosen.load(asking)
            if chosen.is_document:
                return Response(context["document"], headers=DOCUMENT_HEADERS)
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
            "theme": _theme(request),
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
        session = await self._session(request)
        if session is None:
            raise Unauthorized("your session has ended; sign in again", hint="/sign-in")
        _refuse_foreign(request)
        body = await read_body(request, FORM_BYTES_MAX, known=True)
        if not secrets.compare_digest(read_fields(body).get("_csrf", ""), session.csrf):
            raise Forbidden("the form does not belong to this session; load the page again")
        operation = self._operations.get(names["operation"])
        if operation is None:
            raise NotFound(f"there is no operation {names['operation']!r}")
        asking = self._asking(session, {}, b"")
        wants_json = "application/json" in request.headers.get("accept", "")
        back = "/"
        try:
            form = await self._run(partial(read_form, body, partial(completed, asking)))
            back = form.back
            result = await self._run(partial(result_of, asking, operation, form))
        except ThreadlineError as error:
            if wants_json:
                problem = {"problem": str(error), "hint": error.hint, "param": getattr(error, "param", "")}
                return Response(msgspec.json.encode(problem), error.status, media_type="application/json")
            context = {"problem": str(error), "hint": error.hint, "back": back, "theme": _theme(request)}
            return Response(render("refused.html", context), error.status, headers=PAGE_HEADERS)
        if wants_json:
            done = {"result": result, "go": form.destination(result)}
            return Response(msgspec.json.encode(done), media_type="application/json")
        return _redirect(form.destination(result))

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

    async def _look(self, work: Callable[[], T]) -> T:
        """Who is signed in is found at once, however many pages are waited for."""
        return await asyncio.get_running_loop().run_in_executor(self._looks, work)


def _redirect(to: str) -> Response:
    return RedirectResponse(to, 303, {"cache-control": "no-store"})


def _is_secure(request: Request) -> bool:
    """Whether the browser came by HTTPS, to us or to a proxy before us. Whoever lies harms their own cookie."""
    return scheme_of(request) == "https"


def _refuse_foreign(request: Request) -> None:
    """Raise `Forbidden` for a form that another site's page sends.

    Browsers say where a form comes from; only where they do not, by plain HTTP, the two hosts are compared, which are
    not the same where a proxy names another one.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is None:
        is_foreign = bool(origin) and urlsplit(origin or "").netloc != request.headers.get("host", "")
    else:
        is_foreign = site not in ("same-origin", "none")
    if is_foreign:
        raise Forbidden("this form was sent from another site")


def _theme(request: Request) -> str:
    chosen = request.cookies.get("threadline_theme", "")
    return chosen if chosen in ("light", "dark") else "auto"
