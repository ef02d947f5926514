"""Lanes: a class of work that takes long keeps no other waiting, and what is beyond its bound is refused at once."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx
import msgspec
import pytest

from tests.surfaces.conftest import NOW, Keys
from tests.surfaces.operations_stage import record
from threadline.engine.context import Caller, Context
from threadline.engine.engine import Engine
from threadline.kernel.errors import NotFound, ThreadlineError, Unavailable
from threadline.kernel.event import Event, Identifier
from threadline.kernel.operation import Operation, Work
from threadline.settings import Settings
from threadline.surfaces.http.addresses.sign_in import COOKIE
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.lanes import Bound, Lanes, go_on_as
from threadline.surfaces.operation_calls import convert, field_names, path_names, run, shown

GUARD_SECONDS = 120.0
"""After so long a latch opens by itself, so that a test that fails ends."""


class Latch:
    """Holds every thread that comes to it."""

    def __init__(self) -> None:
        self.held = 0
        self.gave_up = False
        self._open = threading.Event()
        self._counting = threading.Condition()

    def wait_for(self, count: int) -> None:
        """Wait until it holds so many."""
        with self._counting:
            self._counting.wait_for(lambda: self.held >= count, GUARD_SECONDS)

    def hold(self) -> None:
        with self._counting:
            self.held += 1
            self._counting.notify_all()
        if not self._open.wait(GUARD_SECONDS):
            self.gave_up = True

    def open(self) -> None:
        self._open.set()


def lanes(**bounds: Bound) -> Lanes:
    names: Any = {name: bounds.get(name, Bound(1, 10)) for name in ("read", "page", "question", "write", "upkeep")}
    return Lanes(names, lambda what: Unavailable(f"no room for {what}"))


# --- one lane --------------------------------------------------------------------------------------


def test_calls_of_a_lane_run_in_order_and_beyond_its_bound_are_refused() -> None:
    made, latch, ran = lanes(question=Bound(1, 2)), Latch(), list[int]()
    question = made.named["question"]
    first = question.submit(latch.hold)
    waiting = [question.submit(lambda number=number: ran.append(number)) for number in range(2)]
    with pytest.raises(Unavailable, match="no room for question calls"):
        question.submit(latch.hold)
    begun = question.submit(lambda: ran.append(2), is_begun=True)
    latch.open()
    for future in (first, *waiting, begun):
        future.result(GUARD_SECONDS)
    assert ran == [0, 1, 2]
    assert question.submit(lambda: "room again").result(GUARD_SECONDS) == "room again"
    made.shutdown()


def test_a_call_that_turns_out_to_be_long_gives_its_thread_back_and_waits_in_the_lane_of_long_ones() -> None:
    made, latch = lanes(question=Bound(1, 1)), Latch()
    page, question = made.named["page"], made.named["question"]
    held = question.submit(latch.hold)

    def long() -> str:
        go_on_as("question")
        go_on_as("question")
        go_on_as("write")  # it stays where it is: a change within a question waits for no other change
        return threading.current_thread().name

    waiting = page.submit(long)
    assert page.submit(lambda: "short").result(GUARD_SECONDS) == "short"
    assert not waiting.done()
    with pytest.raises(Unavailable, match="no room for question calls"):
        page.submit(long).result(GUARD_SECONDS)
    assert page.submit(lambda: "short").result(GUARD_SECONDS) == "short", "a refusal takes no thread away"
    latch.open()
    held.result(GUARD_SECONDS)
    assert waiting.result(GUARD_SECONDS)
    assert question.submit(lambda: "next").result(GUARD_SECONDS) == "next", "its thread was given back"
    made.shutdown()


def test_many_calls_that_go_on_elsewhere_all_end_and_leave_every_lane_free() -> None:
    made = lanes(page=Bound(2, 1_000), question=Bound(2, 1_000), write=Bound(1, 1_000))
    works: list[Work] = ["read", "question", "write"]

    def work(number: int) -> int:
        go_on_as(works[number % 3])
        return number

    futures = [made.named["page"].submit(lambda number=number: work(number)) for number in range(600)]
    assert [future.result(GUARD_SECONDS) for future in futures] == list(range(600))
    for lane in made.named.values():
        latch = Latch()
        held = [lane.submit(latch.hold) for _ in range(lane.bound.threads)]
        latch.open()
        for future in held:
            future.result(GUARD_SECONDS)
    made.shutdown()


def test_a_call_that_nobody_waits_for_any_more_is_not_run() -> None:
    made, latch, ran = lanes(read=Bound(1, 5)), Latch(), list[str]()
    held = made.named["read"].submit(latch.hold)
    left = made.named["read"].submit(lambda: ran.append("left"))
    stays = made.named["read"].submit(lambda: ran.append("stays"))
    assert left.cancel()
    latch.open()
    for future in (held, stays):
        future.result(GUARD_SECONDS)
    assert ran == ["stays"]
    made.shutdown()


# --- law: while every other lane is held, every short read is answered ----------------------------------


def values_of(operation: Operation) -> dict[str, Any]:
    given = {} if operation.example is None else msgspec.to_builtins(operation.example, enc_hook=str)
    return {name: value for name, value in given.items() if value is not None}


def asked(operation: Operation) -> httpx.Request:
    """A call as its documentation shows it."""
    values = {"id": "user_id:1", "name": "x", **values_of(operation)}
    path = operation.path
    for name in path_names(operation):
        path = path.replace(f"{{{name}}}", str(values.get(name, "x")))
    rest = {name: value for name, value in values_of(operation).items() if name not in path_names(operation)}
    if operation.method == "POST":
        return httpx.Request("POST", f"http://testserver{path}", json=rest)
    return httpx.Request(operation.method, f"http://testserver{path}", params=rest)


@pytest.fixture
def latch(engine: Engine) -> Iterator[Latch]:
    """Holds every call but short reads over HTTP, every public route and every hashing of a password."""
    made = Latch()

    def latched(operation: Operation) -> Operation:
        def run(context: Context, params: Any) -> Any:
            if operation.work(params) != "read" or context.caller.surface != "http":
                made.hold()
                raise NotFound("the latch was opened")
            return operation.run(context, params)

        return dataclasses.replace(operation, run=run)

    def public(*_: Any) -> Any:
        made.hold()
        raise NotFound("the latch was opened")

    catalogue = engine.catalogue
    catalogue.operations = tuple(map(latched, catalogue.operations))
    catalogue.public_routes = tuple(dataclasses.replace(route, answer=public) for route in catalogue.public_routes)
    yield made
    made.open()


def test_while_every_other_lane_is_held_every_short_read_is_answered(
    engine: Engine, keys: Keys, latch: Latch, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(_short_reads_beside_everything(engine, keys, latch, monkeypatch))


async def _short_reads_beside_everything(
    engine: Engine, keys: Keys, latch: Latch, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(engine)
    engine.accounts.create("default", "ada", "words that nobody knows", "admin")
    _, cookie = engine.accounts.sign_in("ada", "words that nobody knows")

    def hashing(*_: Any) -> bool:
        latch.hold()
        return False

    monkeypatch.setattr(engine.accounts.hasher, "matches", hashing)
    application = Application(engine, Settings(access_log=False))
    operations = shown(engine.catalogue.operations, "http").values()
    short = [operation for operation in operations if operation.work(_params(operation)) == "read"]
    floods = [asked(operation) for operation in operations if operation not in short]
    floods += [
        httpx.Request(route.method, f"http://testserver{_filled(route.path)}")
        for route in engine.catalogue.public_routes
    ]
    floods += [httpx.Request("GET", "http://testserver/people", headers={"cookie": f"{COOKIE}={cookie}"})]
    sign_in = {"name": "ada", "password": "wrong words"}
    floods += [httpx.Request("POST", "http://testserver/sign-in", data=sign_in)]
    assert (len(short) > 80, len(floods) > 80) == (True, True)

    transport = httpx.ASGITransport(application, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver") as client:
        at_once = max(lane.bound.threads for lane in application.lanes.named.values()) + 2
        flooding = [asyncio.create_task(_sent(client, request, keys)) for request in floods for _ in range(at_once)]
        threads = sum(lane.bound.threads for name, lane in application.lanes.named.items() if name != "read")
        await asyncio.to_thread(latch.wait_for, threads)
        for operation in short:
            answer = await _sent(client, asked(operation), keys)
            assert answer.status_code not in (500, 503), (operation.name, answer.text)
        assert (latch.held, latch.gave_up) == (threads, False)
        latch.open()
        refused = [answer for answer in await asyncio.gather(*flooding) if answer.status_code in (429, 503)]
    assert refused, "what is beyond the bounds is told to come again"
    assert all(int(answer.headers["retry-after"]) > 0 for answer in refused)
    await application.close()


async def _sent(client: httpx.AsyncClient, request: httpx.Request, keys: Keys) -> httpx.Response:
    if "cookie" not in request.headers:
        request.headers["authorization"] = f"Bearer {keys.admin}"
    again = httpx.Request(request.method, request.url, headers=request.headers, content=request.content)
    return await client.send(again)


def _params(operation: Operation) -> Any:
    return operation.example if operation.example is not None else msgspec.defstruct("Nothing", [("when", str, "")])()


def _filled(path: str) -> str:
    return path.replace("{", "").replace("}", "")


# --- law: what is no question reads no more where there is more --------------------------------------


def test_a_short_read_reads_no_more_where_there_are_more_people(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it is to be declared as one that takes long (`Operation.is_long`), or bounded."""
    counted = Counted(engine, monkeypatch)
    operations = [each for each in engine.catalogue.operations if each.work(_params(each)) == "read"]
    read: list[dict[str, int]] = []
    for size in (1_100, 2_200):
        missing = range(sum(1 for _ in engine.reader.all_people("default")), size)
        engine.recorder.record([_purchase(number) for number in missing])
        read.append({operation.name: counted.of(engine, operation) for operation in operations})
    few, many = read
    assert {name: (few[name], many[name]) for name in few if many[name] > few[name] + 50} == {}


def _purchase(number: int) -> Event:
    return Event(
        type="purchase_completed",
        identifiers=(Identifier("user_id", str(number)),),
        occurred_at=NOW - 1,
        key=f"k{number}",
        source="shop",
        properties={"total": number, "currency": "EUR"},
    )


class Counted:
    """Counts what an engine reads of its store."""

    def __init__(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.items = 0
        for name in ("get", "query", "ranges", "scan", "find", "spans", "histories", "feed"):
            monkeypatch.setattr(engine.store, name, self._counting(getattr(engine.store, name)))

    def _counting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **more: Any) -> Any:
            answer = method(*args, **more)
            parts = list(answer.values()) if isinstance(answer, dict) else answer
            self.items += sum(len(part) if isinstance(part, list) else 1 for part in parts)
            return answer

        return counting

    def of(self, engine: Engine, operation: Operation) -> int:
        """How much a call reads, whatever comes of it."""
        before = self.items
        values = {"id": "user_id:1", **values_of(operation)}
        values = {name: value for name, value in values.items() if name in field_names(operation)}
        with suppress(ThreadlineError):
            context = Context(engine, "default", engine.now(), caller=Caller("reader", "token", "http"))
            result = run(operation, context, convert(operation, values, strict=operation.method == "POST"))
            if operation.media_type:
                deque(result, maxlen=0)
        return self.items - before
