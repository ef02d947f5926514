"""Webhooks end to end: from a rule over the outbox to a receiver, through crashes, and back into the thread."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engine.test_dispatch import NOW, Clock
from tests.senders.receiver import OK, Answer, Call, Receiver, is_signed
from threadline.app import open_dispatcher, open_engine
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.kernel.errors import InvalidDefinition, InvalidSetting, InvalidValue, NotFound
from threadline.kernel.time import DAY, HOUR, SECOND
from threadline.settings import Settings
from threadline.surfaces.python.embedded import Threadline

ROOT = Path(__file__).parents[2]
SECRET = "whsec_" + base64.b64encode(b"a" * 32).decode()
DONE, RETRIED, PARKED = "threadline.effect_done", "threadline.effect_retried", "threadline.effect_parked"


def definitions(**urls: str) -> str:
    lines = ["destinations:"]
    for name, url in urls.items():
        lines += [f"  {name}: {{url: '{url}', secrets: [env:CRM_SECRET], timeout: 10s, give_up_after: 1d}}"]
    lines += ["rules:"]
    for name in urls:
        lines += [
            f"  tell-{name}:",
            "    version: 1",
            f"    conditions: {{field: event.properties.to, equals: {name}}}",
            "    actions:",
            f"      - call_webhook: {{destination: {name}, payload: {{order: '${{event.properties.order}}'}}}}",
        ]
    lines += ["  tell-anybody:", "    version: 1", "    conditions: {field: event.properties.url, exists: true}"]
    lines += ["    actions:", "      - call_webhook: {url: '${event.properties.url}', payload: {order: 1}}"]
    names = ", ".join([*(f"tell-{name}" for name in urls), "tell-anybody"])
    return "\n".join([*lines, "rule_sets:", f"  orders: {{events: [ordered], rules: [{names}]}}", ""])


class Shop:
    """A store whose rules call webhooks, with a clock that the test moves."""

    def __init__(self, folder: Path, **urls: str) -> None:
        file = folder / "threadline.yaml"
        file.write_text(definitions(**urls))
        self.settings = Settings(
            store="memory:", definitions=str(file), webhook_private_addresses="127.0.0.0/8", webhook_http=True
        )
        self.clock = Clock()
        self.engine = open_engine(None, self.settings, self.clock)
        self.asked = Threadline(self.engine, workspace="default", source="shop")
        self.dispatcher = open_dispatcher(self.engine, self.settings)

    def order(self, number: int, to: str = "crm", **properties: Any) -> None:
        said = {"order": number, "to": to, **properties}
        self.asked.track(f"ada{number}", "ordered", said, key=f"order {number}")

    def told(self, number: int) -> list[tuple[str, Any]]:
        """What came of the calls, oldest first."""
        events = sorted(self.asked.events.of(f"user_id:ada{number}").events, key=lambda each: each.sequence)
        known = (DONE, RETRIED, PARKED, "threadline.effect_redriven")
        return [(each.type, each.properties) for each in events if each.type in known]

    def work(self, until: int = 0, step: int = 10 * SECOND) -> None:
        while self.dispatcher.run_once() or self.clock.now < until:
            self.clock.now = min(self.clock.now + step, max(until, self.clock.now))


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRM_SECRET", SECRET)


@pytest.fixture
def answers() -> list[Answer]:
    return []


@pytest.fixture
def receiver(answers: list[Answer]) -> Iterator[Receiver]:
    with Receiver(lambda call: answers.pop(0) if answers else OK) as receiver:
        yield receiver


@pytest.fixture
def shop(tmp_path: Path, receiver: Receiver) -> Shop:
    return Shop(tmp_path, crm=receiver.url())


def test_a_rule_calls_and_what_came_of_it_is_in_the_thread(shop: Shop, receiver: Receiver) -> None:
    shop.order(7)
    shop.work()
    [call] = receiver.calls
    assert is_signed(call, SECRET)
    assert b'"payload":{"order":7},"rule":"tell-crm","version":1' in call.body
    [(type, told)] = shop.told(7)
    assert (type, told["destination"], told["status"], told["effect"]) == (DONE, "crm", 204, call.headers["webhook-id"])
    shop.work(NOW + DAY, HOUR)
    assert len(receiver.calls) == 1


def test_the_audit_of_the_decision_shows_the_call(shop: Shop, receiver: Receiver, answers: list[Answer]) -> None:
    answers.append((500, {}, b"later"))
    shop.order(7)
    [decision] = shop.asked.decisions.list(person="user_id:ada7").decisions
    audited = [shop.asked.decisions.audit(decision=decision.decision_id).consequences[0]]
    shop.dispatcher.run_once()
    audited.append(shop.asked.decisions.audit(decision=decision.decision_id).consequences[0])
    shop.work(NOW + HOUR)
    audited.append(shop.asked.decisions.audit(decision=decision.decision_id).consequences[0])
    assert [each.status for each in audited] == ["waiting", "retrying", "done"]


def test_what_fails_is_tried_again_with_the_same_body_and_a_new_signature(
    shop: Shop, receiver: Receiver, answers: list[Answer]
) -> None:
    answers += [(500, {}, b"no"), (400, {}, b"bad"), OK]
    shop.order(7)
    shop.work(NOW + HOUR)
    assert len({call.headers["webhook-id"] for call in receiver.calls}) == 1
    assert len({call.body for call in receiver.calls}) == 1
    assert len({call.headers["webhook-timestamp"] for call in receiver.calls}) == 3
    assert all(is_signed(call, SECRET) for call in receiver.calls)
    assert [type for type, _ in shop.told(7)] == [RETRIED, RETRIED, DONE]


def test_retry_after_is_respected(shop: Shop, receiver: Receiver, answers: list[Answer]) -> None:
    answers.append((429, {"Retry-After": "1800"}, b""))
    shop.order(7)
    shop.work(NOW + 1_799 * SECOND)
    assert len(receiver.calls) == 1
    shop.work(NOW + 1_811 * SECOND)
    assert len(receiver.calls) == 2


def test_gone_stops_the_destination_until_somebody_starts_it(
    shop: Shop, receiver: Receiver, answers: list[Answer]
) -> None:
    answers.append((410, {}, b""))
    shop.order(1)
    shop.work()
    shop.order(2)
    shop.work()
    assert len(receiver.calls) == 1
    assert [shop.told(n)[0][0] for n in (1, 2)] == [PARKED, PARKED]
    [line] = shop.asked.webhooks.destinations().destinations
    assert (line.name, line.state, line.why) == ("crm", "stopped", "it answered 410, gone")
    parked = shop.asked.effects.parked(queue="crm").effects
    assert [each.attempts for each in parked] == [1, 1]
    assert shop.asked.webhooks.start(name="crm").changed
    assert shop.asked.effects.redrive(queue="crm", ids=[parked[0].id]).redriven == 1
    shop.work()
    assert [call.headers["webhook-id"] for call in receiver.calls] == [parked[0].id] * 2
    assert shop.asked.effects.redrive().redriven == 1
    shop.work()
    assert len(receiver.calls) == 3
    assert shop.asked.effects.parked().effects == []
    assert {shop.told(n)[-1][0] for n in (1, 2)} == {DONE}


def test_pages_of_what_is_parked_are_whole(shop: Shop) -> None:
    shop.asked.webhooks.stop(name="crm", why="tidying")
    for number in range(7):
        shop.order(number)
    shop.work()
    seen, cursor = [], ""
    while True:
        page = shop.asked.effects.parked(cursor=cursor, limit=3)
        seen += [each.id for each in page.effects]
        if not (cursor := page.next):
            break
    assert len(set(seen)) == len(seen) == 7
    other = Threadline(shop.engine, workspace="other", source="shop")
    assert other.effects.parked().effects == []
    assert other.effects.redrive().redriven == 0
    assert [shop.asked.effects.redrive(limit=4).redriven for _ in range(3)] == [4, 3, 0]


def test_pages_are_asked_for_by_what_pages_gave(shop: Shop) -> None:
    for given in ({"cursor": "x"}, {"cursor": "crm!\x00"}, {"queue": "crm!"}, {"queue": "C"}):
        with pytest.raises(InvalidValue):
            shop.asked.effects.parked(**given)
        with pytest.raises(InvalidValue):
            shop.asked.effects.redrive(**given)


def test_a_destination_that_fails_rests_and_its_state_is_shown(
    shop: Shop, receiver: Receiver, answers: list[Answer]
) -> None:
    answers += [(503, {}, b"")] * 8
    for number in range(20):
        shop.order(number)
    shop.dispatcher.run_once()
    assert len(receiver.calls) == 8, "the fifth failure is one of the second four that are sent at the same time"
    [line] = shop.asked.webhooks.destinations().destinations
    assert line.state == "resting"
    shop.work(NOW + HOUR)
    [line] = shop.asked.webhooks.destinations().destinations
    assert (line.state, line.waiting) == ("open", 0)
    assert {shop.told(n)[-1][0] for n in range(20)} == {DONE}


def test_a_call_that_must_not_be_made_is_parked(tmp_path: Path, receiver: Receiver) -> None:
    shop = Shop(tmp_path, crm=receiver.url(), inner="http://10.0.0.1/")
    shop.order(1, to="inner")
    shop.order(2, to="nobody", url="http://169.254.169.254/latest/meta-data")
    shop.order(3, to="nobody", url=receiver.url("/own"))
    shop.work()
    [(type, told)] = shop.told(1)
    assert (type, told["why"].startswith("10.0.0.1 is not public")) == (PARKED, True)
    assert shop.told(2)[0][0] == PARKED
    assert [call.path for call in receiver.calls] == ["/own"]
    assert len(shop.asked.effects.parked().effects) == 2


def test_a_slow_destination_holds_up_no_other(tmp_path: Path) -> None:
    answered = threading.Event()

    def dawdle(call: Call) -> Answer:
        answered.wait(300)
        return OK

    with Receiver(dawdle) as slow, Receiver() as fast:
        shop = Shop(tmp_path, slow=slow.url(), fast=fast.url())
        for number in range(10):
            shop.order(number, to="slow")
            shop.order(100 + number, to="fast")
        stopping = threading.Event()
        began = time.monotonic()
        thread = threading.Thread(target=shop.dispatcher.run, args=(stopping,), kwargs={"idle_seconds": 0.02})
        thread.start()
        while len(fast.calls) < 10 and time.monotonic() < began + 240:
            time.sleep(0.01)
        assert len(fast.calls) == 10, "while nobody at the slow one was answered"
        stopping.set()
        answered.set()
        thread.join()
    assert len(slow.calls) <= 4, "no more than the first four at once"


WRITTEN = 'body: \'{"order": {{ payload.order }}, "call": {{ id }}}\', login: {bearer: env:CRM_SECRET}, '


@pytest.mark.slow
@pytest.mark.parametrize("written", ["", WRITTEN])
def test_a_process_that_dies_after_the_call_makes_it_again_at_once_under_the_same_id(
    tmp_path: Path, receiver: Receiver, written: str
) -> None:
    crashes = 2
    store = tmp_path / "shop.db"
    text = definitions(crm=receiver.url())
    (tmp_path / "threadline.yaml").write_text(text.replace("secrets: [", f"{written}secrets: ["))
    environ = {
        **os.environ,
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}",
        "CRM_SECRET": SECRET,
        "THREADLINE_WEBHOOK_HTTP": "true",
        "THREADLINE_WEBHOOK_PRIVATE_ADDRESSES": "127.0.0.0/8",
    }
    engine = open_engine(store)
    shop = Threadline(engine, workspace="default", source="shop")
    shop.track("ada", "ordered", {"order": 7, "to": "crm"}, key="order 7")
    engine.close()
    for run in range(crashes + 1):
        command = [sys.executable, str(ROOT / "tests/senders/crashing_worker.py"), str(store)]
        done = subprocess.run([*command, "crash" if run < crashes else "live"], env=environ, timeout=60, check=False)
        assert done.returncode == (-signal.SIGKILL if run < crashes else 0)
    assert len(receiver.calls) == crashes + 1
    assert len({call.headers["webhook-id"] for call in receiver.calls}) == 1
    assert len({call.body for call in receiver.calls}) == 1
    engine = open_engine(store)
    shop = Threadline(engine, workspace="default", source="shop")
    events = [each.type for each in shop.events.of("user_id:ada").events]
    assert events.count(DONE) == 1
    assert [each for each in events if each in (RETRIED, PARKED)] == []
    engine.close()


# --- what is declared -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("crm: {}", "destination 'crm' needs `url`"),
        ("CRM: {url: https://a.example}", "is not a valid destination name"),
        ("crm: {url: a.example}", "`url` must be an address that begins with https://"),
        ("crm: {url: 'https://a:b@a.example'}", "contains a password"),
        ("crm: {url: https://a.example, secrets: [whsec_abc]}", "secrets stay out of files"),
        ("crm: {url: https://a.example, secrets: []}", "secrets stay out of files"),
        ("crm: {url: https://a.example, timeout: 11s}", "`timeout` must be a duration of at most 10s"),
        ("crm: {url: https://a.example, timeout: soon}", "not a duration"),
        ("crm: {url: https://a.example, give_up_after: 31d}", "`give_up_after` must be a duration"),
        ("crm: {url: https://a.example, at_once: 0}", "`at_once` must be a whole number from 1 to 32"),
        ("crm: {url: https://a.example, at_once: true}", "`at_once` must be a whole number from 1 to 32"),
        ("crm: {url: https://a.example, payload: order}", "`payload` must be a list"),
        ("crm: {url: https://a.example, adress: x}", "unknown key 'adress'"),
    ],
)
def test_what_is_wrong_is_named_where_it_stands(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(f"# Where things go.\ndestinations:\n  {text}\n")
    with pytest.raises(InvalidDefinition) as error:
        open_engine("memory:", definitions=file)
    assert f"{file}:3: " in str(error.value)
    assert problem in str(error.value)


def test_a_rule_that_calls_another_destination_is_told(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    text = definitions(crm="https://a.example")
    file.write_text(text.replace("{destination: crm,", "{destination: crn,"))
    with pytest.raises(InvalidDefinition, match=r"there is no destination 'crn'; did you mean 'crm'\?"):
        open_engine("memory:", definitions=file)
    file.write_text(text.replace("{destination: crm,", "{destination: '${event.properties.to}',"))
    open_engine("memory:", definitions=file).close()


def test_a_secret_that_is_not_there_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CRM_SECRET")
    with pytest.raises(InvalidSetting, match="'crm' signs with env:CRM_SECRET, which is not set"):
        Shop(tmp_path, crm="https://a.example")


def test_who_stops_what_is_not_there_is_told(shop: Shop) -> None:
    with pytest.raises(NotFound):
        shop.asked.webhooks.stop(name="crn")


def test_a_dispatcher_of_the_shop_is_a_dispatcher(shop: Shop) -> None:
    assert isinstance(shop.dispatcher, Dispatcher)
