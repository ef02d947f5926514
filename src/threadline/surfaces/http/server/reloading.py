"""Definitions taken in by a running server: another engine in the place of the one that answers, or none."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from functools import partial

from starlette.types import Receive, Scope, Send

from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.kernel.errors import ThreadlineError, Unavailable
from threadline.surfaces.by_hand import Follower
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.worker_process import keep_working

log = logging.getLogger("threadline.definitions")

Checker = Callable[[Engine, str], str]
"""(engine, a text of all that is made by hand) -> the fingerprint of the definitions that would be in force with it."""

SWITCH_SECONDS_MAX = 30.0
"""How long a reload waits for the server's loop."""


class Generation:
    """One engine with its application and dispatcher, from when it is put in force until its last request has ended."""

    def __init__(self, application: Application, dispatcher: Dispatcher | None) -> None:
        self.application = application
        self.requests = 0
        """In flight, or waiting for a body. Changed by the server's loop alone."""
        self.is_retiring = False
        self._stopping = threading.Event()
        self._working = (
            threading.Thread(
                target=keep_working, args=(dispatcher, self._stopping), name="threadline-dispatch", daemon=True
            )
            if dispatcher is not None
            else None
        )

    @property
    def engine(self) -> Engine:
        """The engine that it answers by."""
        return self.application.engine

    def start(self) -> None:
        """Begin to fire timers and to send what is due."""
        if self._working is not None:
            self._working.start()

    def stop(self) -> None:
        """Fire and send nothing more after what is under way."""
        self._stopping.set()

    def join(self) -> None:
        """Wait until nothing is under way."""
        if self._working is not None and self._working.ident is not None:
            self._working.join()


class Reloadable:
    """The application of the definitions in force. Requests in flight end with those that they began with."""

    def __init__(
        self,
        first: Generation,
        renew: Callable[[Engine], Generation] | None,
        checker: Checker | None = None,
        look_seconds: float | None = None,
    ) -> None:
        """``renew`` makes the generation that takes the place of an engine. It raises if the definitions are wrong.
        ``checker`` raises likewise for what would be made by hand. Every ``look_seconds`` it looks whether another
        process has made a version of that."""
        self._current = first
        self._renew = renew
        self._retiring: set[asyncio.Task[None]] = set()
        self._refresh_seconds = first.engine.shared.refresh_seconds
        self._earlier: list[Generation] = []
        """Those that still answer requests, or send what is due."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reloading = threading.Lock()
        self._checker = checker
        self._follower: Follower | None = None
        if renew is not None and look_seconds is not None:
            self._follower = Follower(look_seconds, lambda: self._current.engine, self._follow)
        if renew is not None:
            self._reload_by(first.engine)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the life of the server."""
        if scope["type"] == "lifespan":
            self._loop = asyncio.get_running_loop()
            await self._live(receive, send)
            return
        generation = self._current
        generation.requests += 1
        try:
            await generation.application(scope, receive, send)
        finally:
            generation.requests -= 1
            self._retire_if_idle(generation)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
                continue
            for generation in (*self._earlier, self._current):
                await generation.application.close()
            await send({"type": "lifespan.shutdown.complete"})
            return

    def start(self) -> None:
        """Begin to fire timers, to send what is due, and to follow what is made by hand."""
        self._current.start()
        if self._follower is not None:
            self._follower.start()

    def stop(self) -> None:
        """End what runs beside requests; to be called when the server has ended."""
        if self._follower is not None:
            self._follower.stop()
        generations = (*self._earlier, self._current)
        for generation in generations:
            generation.stop()
        for generation in generations:
            generation.join()

    def reload(self) -> Engine:
        """Put the definitions, as the files are now, in force; answers the engine that goes by them.

        Called in any thread but the server's loop. Whatever it raises, the old ones stay in force.
        """
        with self._reloading:
            return self._reloaded()

    def _follow(self, version: int) -> None:
        """The same for a version of what is made by hand, unless a request has taken it in meanwhile."""
        if self._loop is None:
            return  # it does not answer yet
        with self._reloading:
            if self._current.engine.maintenance.by_hand < version:
                self._reloaded()

    def _reloaded(self) -> Engine:
        loop, renew = self._loop, self._renew
        assert loop is not None, "requests and signals come while the server runs"
        assert renew is not None, "nobody is handed `reload` without it"
        fresh = renew(self._current.engine)
        self._reload_by(fresh.engine)
        # What the old one still records changes rules and boards behind the back of the new one.
        fresh.engine.shared.refresh_seconds = 0.0
        switched = threading.Event()
        loop.call_soon_threadsafe(self._switch, fresh, switched)
        if not switched.wait(SWITCH_SECONDS_MAX):
            raise Unavailable("the server is too busy to change over; it will as soon as it can")
        log.info("definitions reloaded")
        return fresh.engine

    def _reload_by(self, engine: Engine) -> None:
        engine.maintenance.reloader = self.reload
        if (checker := self._checker) is not None:
            engine.maintenance.checker = partial(checker, engine)

    def reload_at_signal(self) -> None:
        """The same in a thread of its own, with all problems in the log."""

        if self._loop is None:
            return  # it does not answer yet, and has read the files just now

        def reload() -> None:
            try:
                self.reload()
            except ThreadlineError as error:
                log.error("definitions were not reloaded, those in force stay: %s", error)
            except Exception:
                log.exception("definitions were not reloaded, those in force stay")

        threading.Thread(target=reload, name="threadline-reload", daemon=True).start()

    def _switch(self, fresh: Generation, switched: threading.Event) -> None:
        old, self._current = self._current, fresh
        self._earlier.append(old)
        old.stop()
        fresh.start()
        switched.set()
        self._retire_if_idle(old)

    def _retire_if_idle(self, generation: Generation) -> None:
        if generation is not self._current and not generation.requests and not generation.is_retiring:
            generation.is_retiring = True
            task = asyncio.ensure_future(self._retire(generation))
            self._retiring.add(task)
            task.add_done_callback(self._retiring.discard)

    async def _retire(self, generation: Generation) -> None:
        await generation.application.close()
        await asyncio.get_running_loop().run_in_executor(None, generation.join)
        self._earlier.remove(generation)
        if not self._earlier:
            engine = self._current.engine
            engine.ranks.clear()
            engine.shared.refresh_seconds = self._refresh_seconds
