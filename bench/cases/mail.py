"""Mail: claimed, rendered, handed to a local server and settled, beside a loop that only renders and sends."""

from __future__ import annotations

import smtplib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from functools import wraps
from pathlib import Path
from typing import Any

from bench.contest import in_child
from bench.row import Goal, Row
from bench.stage import Stage
from tests.servers.mail_sink import mail_sink
from threadline.app import open_dispatcher, open_engine
from threadline.engine.delivery.outbox import Outbox
from threadline.engine.engine import Engine
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import system_clock
from threadline.settings import load

AT_ONCE = 32
ROUNDS = 4
MAILS_PER_SECOND = 400
GOAL, AIM = Goal("ours", least=400), Goal("ours", least=1_500)
RATIO, RATIO_AIM = Goal("ratio", least=0.3), Goal("ratio", least=0.6)
STAGES = {"_prepared": "render", "_claimed": "claim", "_settle_sent": "settle", "send": "hand over"}
"""Methods of the outbox and what they do; the last calls the others, and does the rest itself."""

SUBJECT = "{{ person.traits.first_name }}, your records are here"
HTML = """<!doctype html><html><body style="margin:0;font:16px Helvetica,Arial,sans-serif">
<table role="presentation" width="100%"><tr><td style="background:#00734f;color:#fff;padding:24px">
<h1 style="margin:0">Hello {{ person.traits.first_name }}</h1></td></tr><tr><td style="padding:24px">
<p>This week we have {{ items | length }} records for you:</p>
<ul>{% for item in items %}<li>{{ item.name }} for {{ item.price }}</li>{% endfor %}</ul>
<p><a href="https://shop.example/week?for={{ person.email | urlencode }}">Look at them</a></p>
<p style="color:#888">You get this because you asked for news.
<a href="{{ unsubscribe_url }}">Unsubscribe</a></p></td></tr></table></body></html>"""
TEXT = """Hello {{ person.traits.first_name }}

This week we have {{ items | length }} records for you:
{% for item in items %}- {{ item.name }} for {{ item.price }}
{% endfor %}
Unsubscribe: {{ unsubscribe_url }}
"""
ITEMS = [{"name": f"Record {number}", "price": f"{9 + number}.90 EUR"} for number in range(6)]
DEFINITIONS = """
mail:
  provider: {{url: "smtp://127.0.0.1:{port}?tls=off", at_once: {at_once}}}
  senders: {{shop: {{from: news@shop.example, name: The Shop}}}}
  templates:
    week: {{subject: {subject!r}, html: week.html, text: week.txt, topic: news, variables: {{items: {{}}}}}}
"""


def measure(stage: Stage) -> list[Row]:
    """Mails in a second, ours and theirs round by round, and the share of each stage of ours."""
    return in_child(_measure, stage.folder, int(MAILS_PER_SECOND * stage.seconds))


def _measure(folder: Path, mails: int) -> list[Row]:
    with mail_sink(folder, log="", features="PIPELINING,8BITMIME,SMTPUTF8,SIZE 10000000") as sink:
        engine, send_all = _ours(folder, sink.port)
        send_bare = _theirs(sink.port)
        each = mails // ROUNDS
        ours = theirs = 0.0
        shares: Counter[str] = Counter()
        for round in range(-1, ROUNDS):
            people = [f"p{round}-{number}" for number in range(each)]
            _record(engine, people)
            with _timed(shares):
                taken = _seconds(send_all)
            bare = _seconds(lambda people=people: send_bare(people))
            if round < 0:  # the first round warms both sides
                shares.clear()
                continue
            ours, theirs = ours + taken, theirs + bare
        _check(engine, people)
        engine.close()
    total = each * ROUNDS
    *parts, whole = STAGES.values()
    shares[whole] -= sum(shares[part] for part in parts)
    note = ", ".join(f"{name} {shares[name] / ours:.0%}" for name in STAGES.values())
    return [
        Row(f"mails of {AT_ONCE} at once, claimed to settled, SQLite", total / ours, "mails/s", None, GOAL, note, AIM),
        Row(
            "the same beside a bare loop over one connection",
            total / ours,
            "mails/s",
            total / theirs,
            RATIO,
            "theirs keeps no ledger",
            RATIO_AIM,
        ),
    ]


def _seconds(run: Callable[[], None]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _ours(folder: Path, port: int) -> tuple[Engine, Callable[[], None]]:
    definitions = folder / "mail.yaml"
    definitions.write_text(DEFINITIONS.format(port=port, at_once=AT_ONCE, subject=SUBJECT))
    (folder / "week.html").write_text(HTML)
    (folder / "week.txt").write_text(TEXT)
    given = {"store": str(folder / "mail.db"), "definitions": str(definitions), "public_url": "https://shop.example"}
    settings = load(given)
    engine = open_engine(None, settings)
    dispatcher = open_dispatcher(engine, settings)

    def send_all() -> None:
        while dispatcher.run_once():
            pass

    return engine, send_all


def _record(engine: Engine, people: list[str]) -> None:
    """Everybody with an address, and a mail for each."""
    now = system_clock()
    events = []
    for who in people:
        whom = (Identifier("user_id", who),)
        traits = {"email": f"{who}@b.example", "first_name": "Ana"}
        events.append(Event(type="identify", identifiers=whom, occurred_at=now, key=f"{who}-1", properties=traits))
        wanted = {"template": "week", "variables": {"items": ITEMS}}
        events.append(
            Event(type="mail_requested", identifiers=whom, occurred_at=now, key=f"{who}-2", properties=wanted)
        )
    for start in range(0, len(events), 200):
        receipts = engine.recorder.record(events[start : start + 200])
        assert {receipt.status for receipt in receipts} == {"accepted"}


def _check(engine: Engine, people: list[str]) -> None:
    """A benchmark that sends nothing must not look fast."""
    for who in (people[0], people[-1]):
        person = engine.reader.person("default", f"user_id:{who}")
        types = [each.event.type for each in engine.reader.events(person)]
        assert types.count("mail_sent") == 1, types
    assert sum(queue.waiting for queue in engine.delivery.queues()) == 0


@contextmanager
def _timed(shares: Counter[str]) -> Iterator[None]:
    """Add up the time in each stage of the outbox."""
    before = {name: getattr(Outbox, name) for name in STAGES}

    def timing(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def timed(*arguments: Any) -> Any:
            began = time.perf_counter()
            try:
                return method(*arguments)
            finally:
                shares[STAGES[name]] += time.perf_counter() - began

        return timed

    for name, method in before.items():
        setattr(Outbox, name, timing(name, method))
    try:
        yield
    finally:
        for name, method in before.items():
            setattr(Outbox, name, method)


def _theirs(port: int) -> Callable[[list[str]], None]:
    """Renders the same templates with the same engine, and sends each mail; it remembers nothing."""
    from minijinja import Environment

    templates = Environment(templates={"subject": SUBJECT, "week.html": HTML, "week.txt": TEXT})
    connection = smtplib.SMTP("127.0.0.1", port, "localhost")

    def send_all(people: list[str]) -> None:
        for number, who in enumerate(people):
            email = f"{who}@b.example"
            unsubscribe = f"https://shop.example/u/{who}"
            context = {
                "person": {"email": email, "traits": {"first_name": "Ana"}},
                "items": ITEMS,
                "unsubscribe_url": unsubscribe,
            }
            message = EmailMessage()
            message["From"] = "The Shop <news@shop.example>"
            message["To"] = email
            message["Subject"] = templates.render_template("subject", **context)
            message["Message-ID"] = f"<{number}.{who}@shop.example>"
            message["List-Unsubscribe"] = f"<{unsubscribe}>"
            message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
            message.set_content(templates.render_template("week.txt", **context))
            message.add_alternative(templates.render_template("week.html", **context), subtype="html")
            connection.send_message(message)

    return send_all
