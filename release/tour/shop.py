"""The shop of the tour: the orders of CDNOW, moved so that they end two months ago, and what became of it since."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from threadline.app import open_dispatcher, open_engine
from threadline.capabilities.reach.feedback.events import ABOUT
from threadline.kernel.event import Event, Identifier
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, parse_time
from threadline.settings import Settings
from threadline.surfaces.cli.demo.history import AFTERWARDS, CURRENCY, orders
from threadline.surfaces.python.embedded import Threadline

DEFINITIONS = Path(__file__).with_name("threadline.yaml")
DAYS = 35
CALL = 500
NAMES = (
    *("Ada", "Bea", "Cleo", "Dora", "Edda", "Finn", "Gus", "Hugo", "Ines", "Jan", "Kira", "Leo", "Mia", "Noa", "Olga"),
    *("Pia", "Quin", "Rosa", "Sam", "Tom", "Uma", "Vera", "Wim", "Xenia", "Yara", "Zoe"),
)
RECORDS = (
    ("Nina Simone", "jazz"),
    ("Can", "krautrock"),
    ("Björk", "pop"),
    ("Fela Kuti", "afrobeat"),
    ("Arvo Pärt", "classical"),
    ("Stereolab", "pop"),
)
FEEDBACK = (("mail_delivered", 0.97), ("mail_opened", 0.45), ("mail_clicked", 0.3))
"""What becomes of a mail, and of how many of those before it."""
LINK = "https://music.example/new"
CAMPAIGNS = ("radio", "search", "friends")


class Shop:
    """A store that is filled day by day, on a clock of its own."""

    def __init__(self, store: Path, now: int) -> None:
        self.now = now - DAYS * DAY
        self.random = Random(1997)
        settings = Settings(public_url="https://music.example")
        self.engine = open_engine(store, settings, lambda: self.now, DEFINITIONS)
        self.api = Threadline(self.engine)
        self.dispatcher = open_dispatcher(self.engine, settings)
        self.members: list[str] = []
        self.number = 0

    def event(self, who: str, type: str, at: int, source: str = "shop", **properties: Any) -> Event:
        """An event of a member, or of what Threadline's own sources say of one."""
        self.number += 1
        return Event(
            type=type,
            identifiers=(Identifier("user_id", who),),
            occurred_at=at,
            key=f"{self.number}",
            source=source,
            source_type="direct" if source == "shop" else "internal",
            properties=properties,
        )

    def history(self) -> None:
        """Eighteen months of orders. The file knows days only; an hour makes each one that somebody can have lived."""
        moved = (self.now // DAY - 1) * DAY - parse_time(f"{AFTERWARDS.isoformat()}T00:00:00Z")

        def seconds(number: int) -> int:
            return number * 7_919 % 50_000 + 25_200

        events = [
            Event(
                type="purchase_completed",
                identifiers=(Identifier("user_id", f"cdnow-{order.customer}"),),
                occurred_at=parse_time(f"{order.day.isoformat()}T00:00:00Z") + moved + seconds(order.number) * SECOND,
                key=f"order-{order.number}",
                source="cdnow",
                historical=True,
                properties={"total": order.dollars, "currency": CURRENCY, "cds": order.cds},
            )
            for order in orders()
        ]
        for start in range(0, len(events), CALL):
            self.engine.recorder.record(events[start : start + CALL])

    def day(self) -> None:
        """One day: what members do, each thing in the minute in which it happens, and every hour what is due."""
        end = self.now + DAY
        happened = sorted(self._happened(self.now), key=lambda event: event.occurred_at)
        hour = self.now
        for minute, events in groupby(happened, key=lambda event: event.occurred_at // MINUTE):
            while hour + HOUR <= minute * MINUTE:
                hour += HOUR
                self.now = max(self.now, hour)
                self.work()
            self.now = max(self.now, (minute + 1) * MINUTE)
            self.engine.recorder.record(list(events))
        self.now = max(self.now, end)
        self.work()

    def _happened(self, begin: int) -> Iterator[Event]:
        """What happens on a day: somebody signs up, members listen, buy or go."""
        random = self.random

        def hour() -> int:
            return begin + int(DAY * random.betavariate(4, 3))

        for _ in range(random.randrange(2, 6)):
            name, who, at = NAMES[len(self.members) % len(NAMES)], f"m{len(self.members) + 1:03}", hour()
            plan, city = random.choice(("free", "free", "club")), random.choice(("Rome", "Oslo", "Lisbon"))
            email = f"{name.lower()}.{who}@example.com"
            yield self.event(who, "identify", at, first_name=name, email=email, plan=plan, city=city)
            yield self.event(who, "signed_up", at + SECOND, plan=plan, campaign=random.choice(CAMPAIGNS))
            self.members.append(who)
        for number, who in enumerate(self.members):
            if random.random() < (0.95 if who == "m001" else 0.7 - number % 7 / 10):
                for _ in range(random.randrange(1, 4)):
                    artist, genre = RECORDS[(number + random.choice((0, 0, 0, 1, 2))) % len(RECORDS)]
                    minutes = random.randrange(3, 50)
                    yield self.event(who, "record_played", hour(), artist=artist, genre=genre, minutes=minutes)
            if random.random() < 0.07:
                total = random.choice((12.99, 16.49, 24.95, 38.9, 61.5, 118.0))
                cds = random.randrange(1, 5)
                yield self.event(who, "purchase_completed", hour(), total=total, currency=CURRENCY, cds=cds)
            if random.random() < 0.01:
                yield self.event(who, "account_closed", hour())

    def work(self) -> None:
        """Do what is due, and let mails become what they become."""
        while self.dispatcher.run_once():
            self.now += 1

    def letter(self) -> None:
        """A broadcast with two subjects, of which a tenth of the people get none."""
        arms = [{"name": "plain", "subject": "New this week"}, {"name": "personal"}]
        self.api.broadcasts.create("autumn-letter", template="letter", arms=arms, holdout=0.1)
        self.api.broadcasts.start("autumn-letter")
        self.work()

    def feedback(self) -> None:
        """What became of the mails that were sent."""
        said = []
        for who in self.members:
            for sent in self.api.events.of(f"user_id:{who}", types=["mail_sent"], limit=100).events:
                about = {name: sent.properties[name] for name in ("message", *ABOUT) if name in sent.properties}
                at = parse_time(sent.occurred_at)
                for type, share in FEEDBACK:
                    at += self.random.randrange(1, 90) * MINUTE
                    if at > self.now or self.random.random() > share:
                        break
                    # A click without a link is that of a machine, which follows what no person sees.
                    link = {"link": LINK} if type == "mail_clicked" else {}
                    said.append(self.event(who, type, at, "threadline.feedback", **about, **link, machine=False))
        self.engine.recorder.record(said)


def fill(store: Path, now: int) -> None:
    """A store with the history and the days since, that ends at ``now``."""
    shop = Shop(store, now)
    shop.history()
    for day in range(DAYS):
        if day == DAYS - 7:
            shop.letter()
        shop.day()
    shop.feedback()
    shop.now = now
    shop.work()
    shop.api.what_if.run(
        rule="large-order",
        content={"conditions": {"field": "event.properties.total", "greater_than": 80}},
        save=True,
        note="Large from 80 dollars on?",
    )
    shop.engine.close()
