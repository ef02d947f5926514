"""A shop that has sent mails, and what comes back: an engine with all that ships, a policy that mails, no network."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

from tests.preparing import one_by_one
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.context import Context
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.delivery.job_worker import JobWorker
from threadline.engine.delivery.leases import Leases
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.errors import OutcomeUnknown
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.policy import Effect, Policy
from threadline.kernel.preparation import Preparation, Prepared
from threadline.kernel.public_route import PublicAnswer, PublicRequest
from threadline.kernel.sender import Outcome, Queue
from threadline.kernel.time import SECOND
from threadline.stores.memory import MemoryStore
from threadline.testing.policy_laws import watched

START = 1_772_359_200 * SECOND
BROWSER = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:feedback"
YAML = f"feedback: {{topics: ['{TOPIC}'], transient_max: 3, transient_within: 7d}}"


def _wish(recorded: Any, known: Any) -> list[Effect]:
    return [Effect(kind="test_mail", key="mail", data=recorded.event.properties, queue="test_mail")]


MAILS = Policy(
    name="test_mails", handles=frozenset({"mail_me"}), react=_wish, emits=frozenset(), sends=frozenset({"test_mail"})
)


def _prepare(ports: Any, view: Any, pending: Any) -> Prepared:
    about = {**pending.effect.data, "message": pending.id}
    return Prepared(data=pending.effect.data, done=Outcome(type="mail_sent", properties=about))


PREPARED = Preparation("test_mail", one_by_one(_prepare))


class _Sender:
    kind = "test_mail"

    def send(self, effect: Effect, effect_id: str, person: str) -> Outcome:
        """Accept it, or not know."""
        if effect.data.get("lost"):
            raise OutcomeUnknown("the connection was lost")
        return Outcome(type="mail_sent", properties={**effect.data, "message": effect_id})


@cache
def _shipped(yaml: str) -> tuple[list[object], Definitions]:
    definitions = Definitions([("threadline.yaml", yaml)])
    return discover(definitions=definitions), definitions


class Stage:
    """An engine, its clock and its callers."""

    def __init__(self, store: Any = None, yaml: str = YAML) -> None:
        self.now = START
        self.problems: list[str] = []
        own = [MAILS, PREPARED, Queue("test_mail", claims=True)]
        shipped, definitions = _shipped(yaml)
        catalogue = Catalogue([*watched(shipped, self.problems), *own], rules(), definitions)
        self.engine = Engine(store or MemoryStore(), catalogue, lambda: self.now)
        self.engine.public_address.use_local("http://shop.example")
        self.context = Context(self.engine, "default", self.now, "test")
        self._keys = 0

    def mail(self, address: str = "ada@example.com", who: str = "ada", **about: Any) -> str:
        """Have a mail sent, and answer with its id."""
        self._keys += 1
        event = Event(
            type="mail_me",
            identifiers=(Identifier("user_id", who),),
            occurred_at=self.now,
            key=f"mail-{self._keys}",
            properties={"address": address, "template": "welcome", **about},
        )
        receipt = self.engine.recorder.record([event])[0]
        assert receipt.status == "accepted"
        dispatcher = Dispatcher(self.engine, {"test_mail": _Sender()}, "test")
        while dispatcher.run_once():
            pass
        from threadline.engine.scheduled import effect_id

        self.pass_(60)
        return effect_id("test_mails", receipt.id, "mail")

    def pass_(self, seconds: float) -> None:
        """Let time pass."""
        self.now += int(seconds * SECOND)

    def work(self) -> None:
        """Do what is due: effects, timers and jobs."""
        dispatcher = Dispatcher(self.engine, {"test_mail": _Sender()}, "test")
        jobs = JobWorker(self.engine, Leases(self.engine.store, self.engine.clock, "test", 30.0))
        while dispatcher.run_once() + jobs.work_due():
            pass

    def decide(self) -> None:
        """Let the time pass after which a fetch is a person's or a machine's."""
        self.pass_(10)
        self.work()

    def run(self, name: str, **params: Any) -> Any:
        """The answer of an operation."""
        operation = self.engine.catalogue.operation(name)
        return operation.run(Context(self.engine, "default", self.engine.now(), "test"), operation.params(**params))

    def request(
        self,
        route: str,
        path: dict[str, str],
        headers: dict[str, str] | None = None,
        body: bytes = b"",
        method: str = "GET",
    ) -> PublicAnswer:
        """The answer of a public route."""
        found = next(each for each in self.engine.catalogue.public_routes if each.name == route)
        asked = PublicRequest(path, {}, headers or {}, body, self.engine.now(), method)
        return found.answer(self.engine, asked)

    def events(self, who: str = "ada", *types: str) -> list[Event]:
        """What happened to somebody."""
        return [each.event for each in self.recorded(who, *types)]

    def recorded(self, who: str = "ada", *types: str) -> list[Recorded]:
        """The same with the ids of the events."""
        person = self.engine.reader.person("default", f"user_id:{who}")
        return self.engine.reader.events(person, types=frozenset(types), limit=1_000)

    def suppressed(self, address: str = "ada@example.com") -> str:
        """Why mail to an address is refused."""
        from threadline.capabilities.reach.consent.rows import suppression_of

        found = suppression_of(self.engine.store, "default", address)
        return "" if found is None else found.reason


def fake_web(**answers: bytes) -> SimpleNamespace:
    """In place of the web: what lies at each address, and what was asked for."""
    asked: list[str] = []

    def get(url: str, bytes_max: int) -> bytes:
        asked.append(url)
        return next(body for part, body in answers.items() if part in url)

    return SimpleNamespace(get=get, asked=asked)
