"""The addresses at which somebody signs in to the console, and looks after their own account.

A password is followed by a code where the account has a second factor, or must have one. What lies between the two is
in a signed ticket, so that the server remembers nothing of who has not signed in yet.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.accounts import Account, Opened, Pending, Session, Step
from threadline.engine.engine import Engine
from threadline.engine.second_factors import Enrolled, Enrolment
from threadline.kernel.errors import Forbidden, ThreadlineError, Unauthorized
from threadline.surfaces.console.actions import local_address
from threadline.surfaces.console.frame import PAGE_HEADERS, render
from threadline.surfaces.console.qr_code import qr_path
from threadline.surfaces.console.signing_in import Attempt, note, sign_in
from threadline.surfaces.http.addresses.counts import Counts
from threadline.surfaces.http.answers.browser import is_secure, redirect, refuse_foreign, refused, theme
from threadline.surfaces.http.answers.in_flight import read_body
from threadline.surfaces.http.answers.problem import RateLimited, headers_of, text_of
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.access import client_host, limited_name
from threadline.surfaces.lanes import Lanes

T = TypeVar("T")

NOTHING: Mapping[str, str] = MappingProxyType({})
COOKIE = "threadline_session"
FORM_BYTES_MAX = 16 * 1024
ACCOUNT = "/account"
"""The screen of one's own account."""


class SignIn:
    """Lets people in, and out."""

    def __init__(
        self,
        engine: Engine,
        workspace: str,
        lanes: Lanes,
        looks: Executor,
        counts: Counts,
        *,
        has_provider: bool = False,
    ) -> None:
        self._engine = engine
        self._has_provider = has_provider
        self._workspace = workspace
        self._lanes = lanes
        self._looks = looks
        self._counts = counts

    def routes(self) -> Iterator[Route]:
        """The steps of signing in, and what somebody changes about their own account."""
        yield Route("GET", "/sign-in", self._show)
        yield Route("POST", "/sign-in", self._by_password)
        yield Route("POST", "/sign-in/code", self._by_code)
        yield Route("POST", "/sign-in/app", self._by_new_app)
        yield Route("POST", "/sign-out", self._sign_out)
        yield Route("GET", "/set-password", self._show_link)
        yield Route("POST", "/set-password", self._set_password)
        own: dict[str, Callable[[Request, Session, Mapping[str, str]], Any]] = {
            "password": self._change_password,
            "second-factor": self._show_app,
            "second-factor/enrol": self._enrol,
            "second-factor/drop": self._drop,
            "recovery-codes": self._renew,
        }
        for path, act in own.items():
            yield Route("POST", f"{ACCOUNT}/{path}", partial(self._own, act))

    async def session(self, request: Request) -> Session | None:
        """Who is signed in; None: nobody is."""
        secret = request.cookies.get(COOKIE, "")
        return await self.look(partial(self._engine.accounts.find, secret)) if secret else None

    # --- signing in -------------------------------------------------------------------------------

    async def _show(self, request: Request, names: Mapping[str, str]) -> Response:
        if await self.session(request) is not None:
            return redirect(local_address(request.query_params.get("next", "")))
        return self.first_page(request, {"next": request.query_params.get("next", "")})

    def first_page(
        self, request: Request, form: Mapping[str, str], error: ThreadlineError | None = None, done: str = ""
    ) -> Response:
        """Where signing in begins; with what went wrong, or what was done."""
        context = {"name": form.get("name", "").strip(), "done": done, "has_provider": self._has_provider}
        return _page(request, "sign_in.html", context, form, error)

    async def _by_password(self, request: Request, names: Mapping[str, str]) -> Response:
        form = await _form(request)
        name, secret = form.get("name", "").strip(), form.get("password", "")
        address = limited_name(client_host(request))
        accounts = self._engine.accounts
        work: Callable[[], Opened | Pending]
        if name:
            work = partial(accounts.sign_in, name, secret, address)
        else:
            work = partial(accounts.sign_in_with_token, secret.strip())
        try:
            made = await self.attempt(request, work, "account" if name else "token", name)
        except ThreadlineError as error:
            return self.first_page(request, form, error)
        if isinstance(made, Opened):
            return self.let_in(request, made, form.get("next", ""))
        if made.must_enrol:
            enrolment = await self.look(partial(self._engine.second_factors.enrolment_at_sign_in, made.ticket))
            return self._app_page(request, enrolment, "/sign-in/app", form)
        return _page(request, "sign_in_code.html", {"ticket": made.ticket}, form)

    async def _by_code(self, request: Request, names: Mapping[str, str]) -> Response:
        form = await _form(request)
        ticket = form.get("ticket", "")
        work = partial(self._engine.second_factors.confirm, ticket, form.get("code", ""))
        try:
            name = await self.look(partial(self._engine.accounts.name_of, ticket))
            opened = await self.attempt(request, work, "account", name)
        except ThreadlineError as error:
            return _page(request, "sign_in_code.html", {"ticket": ticket}, form, error)
        return self.let_in(request, opened, form.get("next", ""))

    async def _by_new_app(self, request: Request, names: Mapping[str, str]) -> Response:
        form = await _form(request)
        ticket = form.get("ticket", "")
        work = partial(self._engine.second_factors.confirm_new, ticket, form.get("code", ""))
        try:
            name = await self.look(partial(self._engine.accounts.name_of, ticket))
            made: Enrolled = await self.attempt(request, work, "account", name)
        except ThreadlineError as error:
            return await self._app_again(request, ticket, "/sign-in/app", form, error)
        session = made.opened.session
        await self.look(partial(note, self._engine, session.workspace, "second_factor_enrol", who=session.name))
        return _with_cookie(request, self._codes_page(request, made.recovery_codes, form), made.opened)

    async def attempt(
        self, request: Request, work: Callable[[], T], credential: str, name: str, given: Mapping[str, str] = NOTHING
    ) -> T:
        """What work gives, which lets somebody in or asks for more; limited by address, and noted. Raises what the
        work raises."""
        here = limited_name(client_host(request))
        if wait := self._counts.sign_ins.wait(here):
            raise RateLimited(f"too many attempts to sign in from here; try again in {wait} s", wait)
        self._counts.sign_ins.charge(here)
        attempt = Attempt(credential, self._workspace, name, {**given, **({"address": here} if here else {})})
        return await self._lanes.run(
            "sign_in", partial(sign_in, self._engine, self._counts.sign_in_failures, attempt, work)
        )

    def let_in(self, request: Request, opened: Opened, next_: str) -> Response:
        """Send a browser on with its session."""
        return _with_cookie(request, redirect(local_address(next_)), opened)

    async def _sign_out(self, request: Request, names: Mapping[str, str]) -> Response:
        refuse_foreign(request)
        await self.look(partial(self._engine.accounts.sign_out, request.cookies.get(COOKIE, "")))
        response = redirect("/sign-in")
        response.delete_cookie(COOKIE, path="/")
        return response

    # --- links to set a password ------------------------------------------------------------------

    async def _show_link(self, request: Request, names: Mapping[str, str]) -> Response:
        link = request.query_params.get("link", "")
        try:
            account = await self.look(partial(self._engine.password_links.account_of, link))
        except ThreadlineError as error:
            return self.first_page(request, {}, error)
        return _page(request, "set_password.html", {"link": link, "name": account.name}, {})

    async def _set_password(self, request: Request, names: Mapping[str, str]) -> Response:
        form = await _form(request)
        link, password = form.get("link", ""), form.get("password", "")
        links, name = self._engine.password_links, ""
        try:
            name = (await self.look(partial(links.account_of, link))).name
            account: Account = await self._lanes.run("sign_in", partial(links.set_password, link, password))
        except Unauthorized as error:
            return self.first_page(request, {}, error)
        except ThreadlineError as error:
            return _page(request, "set_password.html", {"link": link, "name": name}, form, error)
        about = {"name": account.name}
        await self.look(partial(note, self._engine, account.workspace, "password_set", who=account.name, about=about))
        return self.first_page(request, {"name": account.name}, done="The password is set. Sign in with it.")

    # --- one's own account ------------------------------------------------------------------------

    async def _own(
        self,
        act: Callable[[Request, Session, Mapping[str, str]], Any],
        request: Request,
        names: Mapping[str, str],
    ) -> Response:
        session = await self.session(request)
        if session is None:
            return redirect("/sign-in")
        form = await _form(request)
        if not secrets.compare_digest(form.get("_csrf", ""), session.csrf):
            raise Forbidden("the form does not belong to this session; load the page again")
        try:
            response: Response = await act(request, session, form)
        except ThreadlineError as error:
            return refused(error, request, ACCOUNT)
        return response

    async def _change_password(self, request: Request, session: Session, form: Mapping[str, str]) -> Response:
        address = limited_name(client_host(request))
        new = form.get("new", "")
        accounts = self._engine.accounts

        def change() -> None:
            account = accounts.checked_own(session, form.get("password", ""), address)
            accounts.set_password(account.workspace, account.name, new)

        await self._lanes.run("sign_in", change)
        await self._noted(session, "password_change")
        return self.first_page(request, {"name": session.name}, done="The password is changed. Sign in with it.")

    async def _show_app(self, request: Request, session: Session, form: Mapping[str, str]) -> Response:
        enrolment = await self.look(partial(self._engine.second_factors.enrolment, session))
        return self._app_page(request, enrolment, f"{ACCOUNT}/second-factor/enrol", form)

    async def _enrol(self, request: Request, session: Session, form: Mapping[str, str]) -> Response:
        ticket = form.get("ticket", "")
        enrol = partial(self._engine.second_factors.enrol, session, ticket, form.get("code", ""))
        try:
            recovery_codes = await self._lanes.run("sign_in", enrol)
        except ThreadlineError as error:
            return await self._app_again(request, ticket, f"{ACCOUNT}/second-factor/enrol", form, error)
        await self._noted(session, "second_factor_enrol")
        return self._codes_page(request, recovery_codes, {"next": ACCOUNT})

    async def _drop(self, request: Request, session: Session, form: Mapping[str, str]) -> Response:
        address = limited_name(client_host(request))
        drop = partial(self._engine.second_factors.drop_second_factor, session, form.get("password", ""), address)
        await self._lanes.run("sign_in", drop)
        await self._noted(session, "second_factor_drop")
        return redirect(ACCOUNT)

    async def _renew(self, request: Request, session: Session, form: Mapping[str, str]) -> Response:
        address = limited_name(client_host(request))
        renew = partial(self._engine.second_factors.renew_recovery, session, form.get("password", ""), address)
        recovery_codes = await self._lanes.run("sign_in", renew)
        await self._noted(session, "recovery_codes_renew")
        return self._codes_page(request, recovery_codes, {"next": ACCOUNT})

    async def _noted(self, session: Session, act: str) -> None:
        await self.look(partial(note, self._engine, session.workspace, act, who=session.name))

    # --- pages ------------------------------------------------------------------------------------

    def _app_page(
        self,
        request: Request,
        enrolment: Enrolment,
        path: str,
        form: Mapping[str, str],
        error: ThreadlineError | None = None,
    ) -> Response:
        side, drawn = qr_path(enrolment.address)
        context = {
            "ticket": enrolment.ticket,
            "secret": enrolment.secret,
            "qr_side": side,
            "qr_path": drawn,
            "path": path,
            "csrf": form.get("_csrf", ""),
        }
        return _page(request, "sign_in_app.html", context, form, error)

    async def _app_again(
        self, request: Request, ticket: str, path: str, form: Mapping[str, str], error: ThreadlineError
    ) -> Response:
        """The page of an app once more; where its ticket is good for nothing any more, it all begins again."""
        step: Step = "app" if "_csrf" in form else "app at sign-in"
        try:
            enrolment = await self.look(partial(self._engine.second_factors.enrolment_of, step, ticket))
        except Unauthorized as over:
            return self.first_page(request, form, over)
        return self._app_page(request, enrolment, path, form, error)

    def _codes_page(self, request: Request, recovery_codes: list[str], form: Mapping[str, str]) -> Response:
        return _page(request, "recovery_codes.html", {"recovery_codes": recovery_codes}, form)

    async def look(self, work: Callable[[], T]) -> T:
        """Who is signed in is looked up at once, however many pages are waited for."""
        return await asyncio.get_running_loop().run_in_executor(self._looks, work)


async def _form(request: Request) -> dict[str, str]:
    refuse_foreign(request)
    return dict(parse_qsl((await read_body(request, FORM_BYTES_MAX)).decode("utf-8", "replace")))


def _page(
    request: Request,
    template: str,
    context: Mapping[str, Any],
    form: Mapping[str, str],
    error: ThreadlineError | None = None,
) -> Response:
    shared = {
        "next": local_address(form.get("next", "")),
        "problem": "" if error is None else text_of(error),
        "hint": "" if error is None or error.is_inside else error.hint,
        "theme": theme(request),
    }
    headers = {**PAGE_HEADERS, **({} if error is None else headers_of(error))}
    return Response(render(template, {**shared, **context}), 200 if error is None else error.status, headers=headers)


def _with_cookie(request: Request, response: Response, opened: Opened) -> Response:
    # Lax: an address that somebody was sent opens the page; what changes anything is a POST with a secret in it.
    response.set_cookie(COOKIE, opened.secret, httponly=True, samesite="lax", path="/", secure=is_secure(request))
    return response
