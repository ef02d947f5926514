"""The addresses by which an application shows a user's alerts: the web token says whose they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import InvalidValue
from threadline.kernel.operation import Operation
from threadline.surfaces.http.addresses.appaction_body import SOURCE
from threadline.surfaces.http.addresses.operations import read_query
from threadline.surfaces.http.answers.revalidation import revalidated
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.web_user import WebUsers
from threadline.surfaces.lanes import Lanes
from threadline.surfaces.operation_calls import convert

ALERTS_PATH = "/ux/user/alerts"
DISMISS_PATH = "/ux/user/alerts/{alert}/dismiss"


class UserAlerts:
    """Renders `alerts_of` and `alerts_dismiss` for the user of a web token, known or not yet."""

    def __init__(self, engine: Engine, workspace: str, users: WebUsers, lanes: Lanes) -> None:
        self._engine = engine
        self._workspace = workspace
        self._users = users
        self._lanes = lanes

    def routes(self) -> Iterator[Route]:
        """Both are for pages of any origin: users bring their own token."""
        yield Route("GET", ALERTS_PATH, self.alerts, open_to_browsers=True)
        yield Route("POST", DISMISS_PATH, self.dismiss, open_to_browsers=True)

    async def alerts(self, request: Request, names: Mapping[str, str]) -> Response:
        """The alerts that the user is shown now."""
        user = await self._users.user(request)
        asked = read_query(request.scope["query_string"], frozenset())
        if unknown := asked.keys() - {"severity", "dismissed"}:
            raise InvalidValue(f"{min(unknown)[:64]!r} is not a parameter here; there are dismissed and severity")
        with self._engine.recorder.readers.reading():
            body = await self._run("alerts_of", {**asked, "id": f"user_id:{user.id}", "anyone": True})
        return revalidated(request, body, 200, {}, "application/json")

    async def dismiss(self, request: Request, names: Mapping[str, str]) -> Response:
        """Dismiss an alert for the user."""
        user = await self._users.user(request)
        asked = {"id": f"user_id:{user.id}", "alert": names["alert"], "anyone": True}
        body = await self._run("alerts_dismiss", asked)
        return Response(body, headers={"cache-control": "no-store"}, media_type="application/json")

    async def _run(self, name: str, asked: dict[str, Any]) -> bytes:
        operation = self._engine.catalogue.operation(name)
        params = convert(operation, asked, strict=False)
        context = Context(self._engine, self._workspace, self._engine.now(), SOURCE, over_wire=True)
        work = partial(_encoded, operation, context, params)
        return await self._lanes.run(operation.work(params), work)


def _encoded(operation: Operation, context: Context, params: Any) -> bytes:
    # Not by `operation_calls.run`: what users dismiss for themselves is an event of theirs, and no act of an operator.
    return msgspec.json.encode(operation.run(context, params))
