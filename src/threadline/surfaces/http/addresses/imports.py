"""The addresses of the import in the console: a file comes in, its columns are read, it is tried, recorded, stopped."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from threadline.engine.accounts import Session
from threadline.engine.engine import Engine
from threadline.kernel.errors import Forbidden, LimitExceeded, NotFound, ThreadlineError, Unauthorized
from threadline.kernel.limits import UPLOAD_BYTES_MAX
from threadline.kernel.operation import Operation
from threadline.kernel.roles import allows
from threadline.surfaces.console.actions import read_fields
from threadline.surfaces.console.frame import PAGE_HEADERS, render
from threadline.surfaces.console.import_form import declared_of
from threadline.surfaces.http.addresses.console import Console
from threadline.surfaces.http.answers.browser import redirect, refuse_foreign, theme
from threadline.surfaces.http.answers.in_flight import read_body
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.importing.uploads import Upload, Uploads, too_large
from threadline.surfaces.lanes import Lanes
from threadline.wire.multipart import read_multipart

FORM_OVERHEAD = 64 * 1024
"""What a form with a file has beside the file."""
FIELDS_BYTES_MAX = 1024 * 1024
NEEDED = "rejected_resubmit"
"""The operation that somebody has to be allowed who imports: it records events as well."""
Work = Callable[[Upload, Mapping[str, str]], None]
"""A step: the file, and the fields of the form."""


class Imports:
    """Takes files from whoever is signed in, and works on them."""

    def __init__(self, console: Console, engine: Engine, uploads: Uploads, lanes: Lanes) -> None:
        self._console = console
        self._engine = engine
        self._uploads = uploads
        self._lanes = lanes
        self._needed: Operation = engine.catalogue.operation(NEEDED)

    def routes(self) -> Iterator[Route]:
        """The address of each step."""
        yield Route("POST", "/imports", self._upload)
        yield Route("GET", "/imports/{id}/rejects", self._rejects)
        steps: dict[str, Work] = {
            "read": self._read,
            "check": self._check,
            "start": self._start,
            "stop": self._stop,
            "remove": self._remove,
        }
        for step, work in steps.items():
            yield Route("POST", f"/imports/{{id}}/{step}", partial(self._step, work))

    async def _session(self, request: Request) -> Session:
        session = await self._console.session(request)
        if session is None:
            raise Unauthorized("your session has ended; sign in again", hint="/sign-in")
        if not allows(session.role, self._needed, by_token=bool(session.token_scopes)):
            raise Forbidden(f"your role, {session.role}, may not import")
        return session

    async def _upload(self, request: Request, names: Mapping[str, str]) -> Response:
        refuse_foreign(request)
        session = await self._session(request)
        try:
            try:
                body = await read_body(request, UPLOAD_BYTES_MAX + FORM_OVERHEAD, known=True)
            except LimitExceeded:
                raise too_large() from None
            form = read_multipart(body, request.headers.get("content-type", ""))
            _refuse_forged(form.fields.get("_csrf", ""), session)
            add = partial(self._uploads.add, session.workspace, form.file_name, form.content, session.name)
            upload = await self._lanes.run("page", partial(add, self._engine.clock()))
        except ThreadlineError as error:
            return _refused(request, error, "/imports")
        return redirect(_address(upload))

    async def _step(self, work: Work, request: Request, names: Mapping[str, str]) -> Response:
        refuse_foreign(request)
        session = await self._session(request)
        fields = read_fields(await read_body(request, FIELDS_BYTES_MAX, known=True))
        _refuse_forged(fields.get("_csrf", ""), session)
        back = f"/imports/{quote(names['id'], safe='')}"
        try:
            upload = self._uploads.get(session.workspace, names["id"])
            await self._lanes.run("page", partial(work, upload, fields))
        except ThreadlineError as error:
            return _refused(request, error, back)
        go = _address(upload) if upload in self._uploads.listed(session.workspace) else "/imports"
        if _wants_json(request):
            return Response(msgspec.json.encode({"result": None, "go": go}), media_type="application/json")
        return redirect(go)

    def _read(self, upload: Upload, fields: Mapping[str, str]) -> None:
        upload.read_again(fields.get("delimiter", ""))

    def _check(self, upload: Upload, fields: Mapping[str, str]) -> None:
        upload.fields = {name: value for name, value in fields.items() if not name.startswith("_")}
        self._uploads.check(self._engine, upload, declared_of(fields, upload.columns()))

    def _start(self, upload: Upload, fields: Mapping[str, str]) -> None:
        self._uploads.start(self._engine, upload, confirmed=bool(fields.get("confirmed")))

    def _stop(self, upload: Upload, fields: Mapping[str, str]) -> None:
        upload.stopping.set()

    def _remove(self, upload: Upload, fields: Mapping[str, str]) -> None:
        self._uploads.remove(upload)

    async def _rejects(self, request: Request, names: Mapping[str, str]) -> Response:
        session = await self._session(request)
        try:
            upload = self._uploads.get(session.workspace, names["id"])
        except NotFound as error:
            return _refused(request, error, "/imports")
        headers = {
            "content-disposition": "attachment; filename*=UTF-8''" + quote(f"rejected-{upload.path.name}.csv", safe=""),
            "x-content-type-options": "nosniff",
            "cache-control": "no-store",
        }
        return StreamingResponse(upload.rejected_rows(), 200, headers, "text/csv; charset=utf-8")


def _address(upload: Upload) -> str:
    return f"/imports/{upload.id}"


def _refuse_forged(csrf: str, session: Session) -> None:
    if not secrets.compare_digest(csrf, session.csrf):
        raise Forbidden("the form does not belong to this session; load the page again")


def _wants_json(request: Request) -> bool:
    return "application/json" in request.headers.get("accept", "")


def _refused(request: Request, error: ThreadlineError, back: str) -> Response:
    problem: dict[str, Any] = {"problem": str(error), "hint": error.hint, "param": getattr(error, "param", "")}
    if _wants_json(request):
        return Response(msgspec.json.encode(problem), error.status, media_type="application/json")
    context = {**problem, "back": back, "theme": theme(request)}
    return Response(render("refused.html", context), error.status, headers=PAGE_HEADERS)
