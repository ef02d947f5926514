"""The addresses for actions in applications: of users by their web token, of visitors by their network address."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.context import Context
from threadline.engine.credentials import Credential, fresh_key
from threadline.kernel.errors import EventRejected, Forbidden, InvalidValue, NotFound
from threadline.kernel.event import Event, Identifier
from threadline.kernel.limits import EVENT_BYTES_MAX
from threadline.kernel.lists import comma_separated
from threadline.kernel.time import MINUTE, SECOND, Clock
from threadline.settings import Settings
from threadline.surfaces.composition import SharedLimits
from threadline.surfaces.http.addresses.appaction_body import SOURCE, AppAction, TopicQuestion, event_of, read
from threadline.surfaces.http.addresses.operations import read_object
from threadline.surfaces.http.answers.in_flight import read_body
from threadline.surfaces.http.answers.problem import RateLimited
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.access import client_host, limited_name
from threadline.surfaces.http.callers.web_user import WebUsers
from threadline.surfaces.http.events.ingest import Ingest
from threadline.surfaces.lanes import Lanes
from threadline.surfaces.operation_calls import convert, run

NAMES_MAX = 20_000
"""Names that are remembered; beyond it those that have not acted for longest start afresh."""


class Window:
    """``most`` actions of a name in any ``size`` microseconds; 0 lets all pass."""

    def __init__(self, most: int, clock: Clock, size: int = MINUTE) -> None:
        self.most = most
        self._clock = clock
        self._size = size
        self._times: dict[str, deque[int]] = {}
        """Name -> when it acted, least recently used name first."""

    def wait(self, name: str) -> int:
        """Seconds until this name may act again, rounded up; 0 if it may now."""
        times = self._times.get(name)
        if not self.most or times is None:
            return 0
        now = self._clock()
        # What lies ahead was counted before the clock was set back, and would otherwise never leave.
        while times and (times[0] <= now - self._size or times[-1] > now):
            times.popleft() if times[0] <= now - self._size else times.pop()
        return 0 if len(times) < self.most else max(1, math.ceil((times[0] + self._size - now) / SECOND))

    def charge(self, name: str) -> None:
        """Count one action of a name that was let pass."""
        if not self.most:
            return
        times = self._times.pop(name, None) or deque(maxlen=self.most)
        times.append(self._clock())
        self._times[name] = times
        while len(self._times) > NAMES_MAX:
            del self._times[next(iter(self._times))]


USER_PATH = "/ux/user/appaction"
ANONYMOUS_PATH = "/ux/appaction"
RANKING_PATH = "/ux/user/actions/gettopicvaluefrequency"

ADDRESS = "ip_address"
"""The kind of identifier of a visitor of whom only the network address is known. It is never joined to anyone."""
EVERY_APPLICATION = "*"
EMAIL = "email"


class AppActionReceipt(msgspec.Struct, rename="camel"):
    """The outcome of an action, answered after the commit: what was accepted is durable."""

    action_id: str
    status: str
    """accepted, duplicate, or conflict: the same id was used before for another action, which stands."""
    message_id: str
    """What to ask ``/v1/messages`` for: an action's id is its actor's own, and another's may have the same."""


class WeighedValue(msgspec.Struct, rename="camel", omit_defaults=True):
    """A value and what it is worth."""

    scope_topic: str
    value: str
    weight: float
    current: int | None = None
    """Actions in the current period, where periods are weighed."""
    previous: int | None = None


class AppActions:
    """The three addresses. What they record is of the workspace that the settings name."""

    def __init__(
        self,
        ingest: Ingest,
        settings: Settings,
        users: WebUsers,
        window: Window,
        lanes: Lanes,
        shared: SharedLimits | None = None,
    ) -> None:
        self._ingest = ingest
        self._engine = ingest.engine
        self._users = users
        self._lanes = lanes
        self._shared = shared
        self._workspace = settings.workspace
        self._credential = Credential(id=SOURCE, kind="write_key", name=SOURCE, workspace=settings.workspace)
        names = set(comma_separated(settings.anonymous_applications))
        self._applications = None if EVERY_APPLICATION in names else names
        self._window = window

    def routes(self) -> Iterator[Route]:
        """All three are for pages of any origin: users bring their own token, visitors none."""
        yield Route("POST", USER_PATH, self.of_user, open_to_browsers=True)
        yield Route("POST", ANONYMOUS_PATH, self.of_visitor, open_to_browsers=True)
        yield Route("POST", RANKING_PATH, self.ranking, open_to_browsers=True)

    async def of_user(self, request: Request, names: Mapping[str, str]) -> Response:
        """Record an action of the user whom the token names."""
        user = await self._users.user(request)
        action = await _action(request, known=True)
        identifiers = [Identifier("user_id", user.id)]
        if user.email:
            identifiers.append(Identifier(EMAIL, user.email))
        if action.anonymous_id:
            identifiers.append(Identifier("anonymous_id", action.anonymous_id))
        event = self._event(request, action, identifiers)
        event = await self._ingest.writer.run(partial(self._as_before, event))
        return await self._record(event, request, action, limited=False)

    def _as_before(self, event: Event) -> Event:
        """The event with the e-mail addresses that the token of its first telling had.

        They are what the token says of the user today and no part of the action: with others it is still a retry.
        """
        first = self._engine.log.of_key(event.workspace, event.source, event.key)
        if first is None:
            return event
        user, *others = event.identifiers
        emails = [identifier for identifier in first.event.identifiers if identifier.kind == EMAIL]
        identifiers = (user, *emails, *(other for other in others if other.kind != EMAIL))
        return msgspec.structs.replace(event, identifiers=identifiers)

    async def of_visitor(self, request: Request, names: Mapping[str, str]) -> Response:
        """Record an action of somebody unknown: by the device if it names itself, else by the network address."""
        action = await _action(request, known=False)
        if not action.application_id:
            raise InvalidValue("an anonymous action needs `applicationId`", param="applicationId")
        if self._applications is not None and action.application_id not in self._applications:
            raise Forbidden(
                f"the application {action.application_id!r} may not send anonymous actions",
                hint="the setting anonymous_applications lists those that may",
            )
        if action.anonymous_id:
            actor = Identifier("anonymous_id", action.anonymous_id)
        else:
            actor = Identifier(ADDRESS, _address(request))
        return await self._record(self._event(request, action, [actor]), request, action, limited=True)

    async def ranking(self, request: Request, names: Mapping[str, str]) -> Response:
        """The values of a topic that the user cares about most, first; with their weights where that is asked for."""
        user = await self._users.user(request)
        question: TopicQuestion = read(
            read_object(await read_body(request, EVENT_BYTES_MAX, known=True)), TopicQuestion
        )
        asked = {"id": f"user_id:{user.id}", "topic": question.topic.strip(), "limit": question.limit}
        if question.scope_topic:
            asked["scope"] = question.scope_topic
        if question.application_id:
            asked["application"] = question.application_id
        ranking = self._engine.catalogue.operation("interests_of")
        params = convert(ranking, asked, strict=True)
        context = Context(self._engine, self._workspace, self._engine.now(), SOURCE, over_wire=True)

        def work() -> bytes:
            try:
                topics = run(ranking, context, params).topics
            except NotFound:
                topics = []  # somebody of whom nothing is known cares about nothing yet
            values = [value for topic in topics for value in topic.values]
            return msgspec.json.encode(_answer(values, question.include_weights))

        body = await self._lanes.run("read", work)
        return Response(body, headers={"cache-control": "no-store"}, media_type="application/json")

    def _event(self, request: Request, action: AppAction, identifiers: list[Identifier]) -> Event:
        # A retry may come from another network, so the address is no part of what was said.
        wire = {"ip": _address(request), "userAgent": request.headers.get("user-agent", "")[:500]}
        now = self._engine.clock()
        return event_of(action, identifiers, workspace=self._workspace, received_at=now, wire=wire)

    async def _record(self, event: Event, request: Request, action: AppAction, *, limited: bool) -> Response:
        if limited:
            await self._limit(event, limited_name(_address(request)))
        outcome = await self._ingest.take([event], self._credential, _address(request), SOURCE)
        if outcome.rejected:
            raise EventRejected(outcome.rejected[0].code, outcome.rejected[0].message)
        status = "duplicate" if outcome.duplicates else "conflict" if outcome.conflicts else "accepted"
        receipt = AppActionReceipt(action.action_id, status, event.key)
        return Response(msgspec.json.encode(receipt), media_type="application/json")

    async def _limit(self, event: Event, name: str) -> None:
        # A retry of what is recorded costs nothing and always passes: refusing it would only bring it again. Another
        # action under the same id is no retry: it is kept as a conflict.
        if not await self._ingest.writer.run(lambda: self._engine.recorder.fresh(self._engine.recorder.check([event]))):
            return
        together = None
        if self._shared is not None and self._window.most:
            limit = (f"action:{name}", self._window.most / 60, self._window.most)
            together = await asyncio.to_thread(self._shared.take, [limit], 1)
        wait = self._window.wait(name) if together is None else math.ceil(together)
        if wait:
            raise RateLimited(f"too many actions from here; come again in {wait} s", wait)
        # Here as well, so that what follows is known should the others be out of reach then.
        self._window.charge(name)


async def _action(request: Request, *, known: bool) -> AppAction:
    body = await read_body(request, EVENT_BYTES_MAX, known=known)
    action: AppAction = read(read_object(body), AppAction)
    action.action_id = action.action_id or fresh_key()
    return action


def _address(request: Request) -> str:
    return client_host(request) or "unknown"


def _answer(values: list[Any], weighed: bool) -> list[Any]:
    if not weighed:
        return list(dict.fromkeys(value.value for value in values))
    return [WeighedValue(value.scope, value.value, value.weight, value.current, value.previous) for value in values]
