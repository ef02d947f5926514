"""Search: how fast the embedded index takes in the log, beside its engine alone, and how long a search takes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from bench.contest import in_child
from bench.row import Goal, Row, quantile
from bench.side import file_bytes
from bench.stage import Stage
from threadline.app import catalogue
from threadline.capabilities.ask.search.documents import document_of
from threadline.capabilities.ask.search.operations.find import FindParams, find
from threadline.engine.context import Context
from threadline.engine.engine import Engine
from threadline.engine.erasure.erased_ids import erased_since
from threadline.engine.folding.packing import encode_event, log_entry, payload_digest
from threadline.exports.search.embedded import COMMITTED_PAGES, EmbeddedIndex
from threadline.exports.search.tables import Tables
from threadline.kernel.event import Event, Identifier, Recorded, event_id, thread_id
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.search import Query
from threadline.kernel.store import Batch, feed_pages
from threadline.kernel.time import HOUR, SECOND, format_time, system_clock
from threadline.stores.sqlite.store import SqliteStore

WORDS = 20_000
QUERIES = 2_000
TYPES = (
    ["page_viewed"] * 50 + ["product_viewed"] * 25 + ["email_opened"] * 10 + ["cart_updated"] * 10 + ["purchase"] * 5
)


def measure(stage: Stage) -> list[Row]:
    """The rate of indexing, and percentiles of searches: words, two words, with a type, of a person, of a time."""
    path = stage.folder / "search.db"
    in_child(_fill, path, stage.world.history, stage.world.seed)
    return in_child(_rows, path, stage.world.history, stage.world.seed)


def _vocabulary(seed: int) -> tuple[random.Random, list[str], list[float]]:
    chance = random.Random(seed)
    syllables = [a + b for a in "bcdfglmnprstv" for b in "aeiou"]
    words = ["".join(chance.choices(syllables, k=chance.randint(1, 4))) for _ in range(WORDS)]
    return chance, words, list(accumulate(1 / (rank + 1) for rank in range(WORDS)))


def _events(count: int, seed: int) -> Iterator[Recorded]:
    chance, words, weights = _vocabulary(seed)
    at = system_clock() - count * SECOND - HOUR
    for number in range(count):
        at += chance.randrange(2 * SECOND)
        text = chance.choices(words, cum_weights=weights, k=12)
        person = Identifier("user_id", f"user{int(chance.paretovariate(0.7)) % 50_000}")
        event = Event(
            type=chance.choice(TYPES),
            identifiers=(person,),
            occurred_at=at,
            key=str(number),
            properties={
                "title": " ".join(text[:5]),
                "url": f"https://www.shop.example/{text[5]}/{text[6]}",
                "note": " ".join(text[7:]),
                "total": chance.randrange(100_000),
                "currency": "EUR",
            },
        )
        yield Recorded(
            event, event_id("default", "direct", str(number)), thread_id("default", person), number + 1, at, ""
        )


def _fill(path: Path, count: int, seed: int) -> None:
    store = SqliteStore(path)
    batch: list[Any] = []
    for each in _events(count, seed):
        batch.append(log_entry(each, encode_event(each.event), payload_digest(each.event)))
        if len(batch) == PAGE_ITEMS_MAX:
            store.commit([Batch(batch[start : start + 50]) for start in range(0, len(batch), 50)])
            batch = []
    store.commit([Batch(batch[start : start + 50]) for start in range(0, len(batch), 50)])
    store.close()


def _rows(path: Path, count: int, seed: int) -> list[Row]:
    engine = Engine(SqliteStore(path, readonly=True), catalogue(), system_clock)
    made = partial(EmbeddedIndex, log=engine.log, documents=document_of, erased=partial(erased_since, engine.store))
    index = engine.search = made(path.with_name("search.db-search"))
    began = time.process_time()
    index.catch_up(count + 1)
    ours = count / (time.process_time() - began)
    alone = count / _alone(engine, made(path.with_name("alone.db-search")))
    what = f"search: indexing {count:,} events from the log"
    note = "theirs: FTS5 given the same rows ready made"
    must, aim = Goal("ours", least=10_000), Goal("ours", least=20_000)
    rows = [
        Row(what, ours, "events/s a core", alone, must, note, aim),
        Row(f"{what}, ratio", ours, "events/s a core", alone, Goal("ratio", least=0.5), "", Goal("ratio", least=0.7)),
        Row("search: index and its log, bytes an event", file_bytes(path.with_name("search.db-search")) / count, "B"),
    ]
    context = Context(engine, "default", engine.now())
    queries = list(_queries(count, seed))
    ran = [find.run(context, each) for each in queries[:50]]
    assert any(each.hits for each in ran)
    for facets, bound in ((False, 5.0), (True, 20.0)):
        latencies = []
        for each in queries:
            each.facets = facets
            began = time.perf_counter()
            find.run(context, each)
            latencies.append((time.perf_counter() - began) * 1e3)
        name, most = f"search: 20 of {count:,} events{', with facets' if facets else ''}", Goal("ours", most=20.0)
        rows.append(Row(f"{name}, p50", quantile(latencies, 0.5), "ms"))
        note, aim = f"{len(queries):,} searches", Goal("ours", most=bound)
        rows.append(Row(f"{name}, p99", quantile(latencies, 0.99), "ms", None, most, note, aim))
    engine.close()
    return rows


def _alone(engine: Engine, index: EmbeddedIndex) -> float:
    """Seconds in which the engine takes in rows that are ready, in transactions of the same size."""
    index.search(Query("default"))  # makes the file, and takes in the first entries
    index.rebuild()
    documents = [document_of(engine.log.read(each)) for each in feed_pages(engine.store)]
    with index.opened() as db:
        tables = Tables(db, 1)
        tables.create()
        number_of = {value: number for number, value in enumerate(["", *sorted({each.type for each in documents})], 1)}
        size, spent = PAGE_ITEMS_MAX * COMMITTED_PAGES, 0.0
        for start in range(0, len(documents), size):
            rows = tables.rows(documents[start : start + size], number_of)
            began = time.process_time()
            with db:
                tables.write(rows)
            spent += time.process_time() - began
    index.close()
    return spent


def _queries(count: int, seed: int) -> Iterable[FindParams]:
    chance, words, _ = _vocabulary(seed)
    ago = system_clock() - HOUR

    def word() -> str:
        return words[min(int(chance.paretovariate(0.6)) - 1, WORDS - 1)]

    for _ in range(QUERIES):
        kind = chance.random()
        if kind < 0.3:
            yield FindParams(text=word())
        elif kind < 0.5:
            yield FindParams(text=f"{word()} {word()}")
        elif kind < 0.65:
            yield FindParams(text=word(), type=chance.choice(TYPES))
        elif kind < 0.8:
            start = ago - chance.randrange(count) * SECOND
            yield FindParams(text=word(), start=format_time(start), stop=format_time(start + count * SECOND // 10))
        elif kind < 0.9:
            yield FindParams(text=f'"{word()} {word()}"')
        else:
            yield FindParams(text=f"{word()} -{word()}")
