"""The search index in OpenSearch: a consumer of the feed fills it, and aliases let it be built anew without a gap.

Of each workspace there is an index of events and one of decisions, by generation. Searches name aliases. To build anew
is to fill a further generation beside the one that is searched, and to move the aliases in one request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import msgspec

from threadline.engine.damage import DamagedEvents
from threadline.engine.delivery.feed_consumer import FeedConsumer, FeedHandler, FeedPage, consumer_state, cursor_key
from threadline.exports.search import mapping
from threadline.exports.search.opensearch import Action, OpenSearch
from threadline.kernel.errors import NotConfigured, NotFound
from threadline.kernel.event_type import SeenTypes
from threadline.kernel.limits import SEEN_TYPES_MAX
from threadline.kernel.personal import Copy
from threadline.kernel.search import (
    Documents,
    Facets,
    IndexProgress,
    IndexStatus,
    Matches,
    PeopleMatches,
    PeopleQuery,
    Query,
)
from threadline.kernel.store import Batch, Delete, Store
from threadline.kernel.time import Clock, format_time

PAGE_EVENTS = 500
_GENERATIONS = "generations"
_IDS_AT_ONCE = 1_000

Erased = Callable[[str], tuple[Collection[str], str]]
"""The ids of the events erased since a mark ("": ever), and the mark to ask with the next time."""


class _Generations(NamedTuple):
    serving: int = 1
    building: int = 0
    """0: none is being built."""


class Cluster(NamedTuple):
    """What an index is made with."""

    url: str
    prefix: str
    store: Store
    damage: DamagedEvents
    documents: Documents
    erased: Erased
    clock: Clock


class _Generation:
    """One generation of the indexes: the handler of its consumer."""

    page_events = PAGE_EVENTS

    def __init__(self, cluster: Cluster, number: int, *, is_serving: bool) -> None:
        self.name = f"opensearch.{number}"
        self._cluster = cluster
        self._number = number
        self._is_serving = is_serving
        self._client = OpenSearch(cluster.url)
        self._made: set[str] = set()

    def handle(self, page: FeedPage) -> None:
        """Index a page; an event that comes again has the same id, and takes its own place."""
        events = list(page.events(self._cluster.damage))
        self._client.bulk(self._actions(event for _, event in events))
        # Asked for after the events were read: what was erased meanwhile is taken out again.
        last = page.first + len(page.entries) - 1
        self.take_out_erased()
        state = {
            "worker": self.name,
            "shard": "feed",
            "cursor": page.entries[-1].cursor,
            "position": last,
            "last_processed_at": format_time(self._cluster.clock()),
        }
        _write(self._client, self._cluster, self.name, state)

    def take_out_erased(self) -> None:
        """Delete what was erased since the last time."""
        name = f"{self.name}.erased"
        before = str(_document(self._client, self._cluster, name).get("mark", ""))
        ids, mark = self._cluster.erased(before)
        every = sorted(ids)
        for start in range(0, len(every), _IDS_AT_ONCE):
            body = {"query": {"terms": {"id": every[start : start + _IDS_AT_ONCE]}}}
            try:
                self._client.call("POST", f"/{self.pattern}/_delete_by_query?refresh=true&conflicts=proceed", body)
            except NotFound:
                break
        if mark != before:
            _write(self._client, self._cluster, name, {"worker": name, "mark": mark})

    @property
    def pattern(self) -> str:
        """What all indexes of this generation are named like."""
        return f"{self._cluster.prefix}-*-v{self._number}"

    def _actions(self, events: Iterator[Any]) -> Iterator[Action]:
        for recorded in events:
            document = self._cluster.documents(recorded)
            kind = mapping.DECISIONS if document.rule else mapping.EVENTS
            index = self._index(mapping.alias_of(self._cluster.prefix, document.workspace, kind))
            body = msgspec.json.encode(mapping.body_of(recorded, document))
            yield {"index": {"_index": index, "_id": document.id}}, body

    def _index(self, alias: str) -> str:
        name = f"{alias}-v{self._number}"
        if name not in self._made:
            try:
                self._client.call("GET", f"/{name}")
            except NotFound:
                aliases: dict[str, Any] = {alias: {}} if self._is_serving else {}
                self._client.call("PUT", f"/{name}", {**mapping.INDEX, "aliases": aliases})
            self._made.add(name)
        return name


class _Opened(NamedTuple):
    """A generation that this process fills."""

    handler: _Generation
    consumer: FeedConsumer
    is_serving: bool


class OpenSearchIndex:
    """The implementation of `SearchIndex` on OpenSearch. Thread-safe."""

    is_begun = True

    def __init__(self, cluster: Cluster, consumer_of: Callable[[FeedHandler], FeedConsumer]) -> None:
        self._cluster = cluster
        self._consumer_of = consumer_of
        self._open: dict[int, _Opened] = {}
        self._catching_up = threading.Lock()
        self._here = threading.local()
        # Made at once: a process with an address that is none must not start, and fail in the background for ever.
        self._here.client = OpenSearch(cluster.url)

    def search(self, query: Query) -> Matches:
        """See `SearchIndex.search`; it answers from what the consumer has indexed."""
        progress = self._progress()
        if query.threads == ():
            return Matches([], "", progress, Facets(0, True, {}) if query.facets else None)
        path = self._path(query.workspace, query.decisions)
        answer = self._client.call("POST", path, mapping.search_body(query))
        hits = answer["hits"]["hits"]
        following = mapping.cursor_of(hits[query.limit - 1]) if len(hits) > query.limit else ""
        facets = _facets(answer) if query.facets else None
        return Matches([hit["_id"] for hit in hits[: query.limit]], following, progress, facets)

    def people(self, query: PeopleQuery) -> PeopleMatches:
        """Raise `NotConfigured`: its documents are events, in which people are found by words."""
        hint = "They are found by the beginnings of words in events that name them, the newest first."
        raise NotConfigured("OpenSearch has events, and no index of people", hint=hint)

    def types(self, workspace: str) -> SeenTypes:
        """See `SearchIndex.types`."""
        is_at_end = self._progress().is_complete
        answer = self._client.call("POST", self._path(workspace), mapping.types_body())
        names = frozenset(bucket["key"] for bucket in answer["aggregations"]["type"]["buckets"])
        return SeenTypes(names, is_at_end and len(names) < SEEN_TYPES_MAX)

    def catch_up(self, limit: int) -> IndexProgress:
        """See `SearchIndex.catch_up`. What another process is at, it leaves to that one."""
        with self._catching_up:
            numbers = self._generations()
            for number in filter(None, numbers):
                generation = self._opened(number, is_serving=number == numbers.serving)
                taken = 0
                while taken < limit and (step := generation.consumer.step()):
                    taken += step
                generation.handler.take_out_erased()
            if numbers.building and self._has_all(f"opensearch.{numbers.building}"):
                self._switch(numbers)
        return self._progress()

    def rebuild(self) -> None:
        """See `SearchIndex.rebuild`. Searches go on in what is there until the new generation has everything."""
        with self._catching_up:
            serving, building = self._generations()
            _write(
                self._client, self._cluster, _GENERATIONS, {"serving": serving, "building": max(serving, building) + 1}
            )
            if building:
                self._remove(building)

    def status(self) -> IndexStatus:
        """See `SearchIndex.status`."""
        pattern = f"{self._cluster.prefix}-*-v{self._generations().serving}"
        answer = self._client.call("GET", f"/{pattern}/_stats/docs,store?ignore_unavailable=true")
        total = answer["_all"]["primaries"]
        documents, size = total.get("docs", {}).get("count", 0), total.get("store", {}).get("size_in_bytes", 0)
        return IndexStatus("opensearch", self._progress(), documents, size, self._client.where)

    def close(self) -> None:
        """Give leases back."""
        with self._catching_up:
            for number in list(self._open):
                self._let_go(number)

    @property
    def _client(self) -> OpenSearch:
        client: OpenSearch | None = getattr(self._here, "client", None)
        if client is None:
            client = self._here.client = OpenSearch(self._cluster.url)
        return client

    def _path(self, workspace: str, decisions: bool | None = None) -> str:
        kinds = {None: (mapping.EVENTS, mapping.DECISIONS), True: (mapping.DECISIONS,), False: (mapping.EVENTS,)}
        names = (mapping.alias_of(self._cluster.prefix, workspace, kind) for kind in kinds[decisions])
        return f"/{','.join(names)}/_search?ignore_unavailable=true&allow_no_indices=true"

    def _generations(self) -> _Generations:
        document = _document(self._client, self._cluster, _GENERATIONS)
        return _Generations(**document) if document else _Generations()

    def _opened(self, number: int, *, is_serving: bool) -> _Opened:
        opened = self._open.get(number)
        # One that was built and is searched now has to make aliases with its indexes.
        if opened is None or opened.is_serving != is_serving:
            self._let_go(number)
            handler = _Generation(self._cluster, number, is_serving=is_serving)
            opened = self._open[number] = _Opened(handler, self._consumer_of(handler), is_serving)
        return opened

    def _let_go(self, number: int) -> None:
        opened = self._open.pop(number, None)
        if opened is not None:
            opened.consumer.let_go()

    def _progress(self) -> IndexProgress:
        serving = self._generations().serving
        state = _document(self._client, self._cluster, f"opensearch.{serving}")
        cursor = str(state.get("cursor", ""))
        store = self._cluster.store
        return IndexProgress(int(state.get("position", 0)), not store.feed(cursor, 1) and not store.feed_waits(cursor))

    def _has_all(self, name: str) -> bool:
        return not self._cluster.store.feed(consumer_state(self._cluster.store, name).cursor, 1)

    def _switch(self, numbers: _Generations) -> None:
        """Let the aliases name the new generation, all in one request."""
        add, remove = self._names(numbers.building), self._names(numbers.serving)
        end = f"-v{numbers.building}"
        actions: list[dict[str, Any]] = [{"add": {"index": name, "alias": name.removesuffix(end)}} for name in add]
        actions += [{"remove_index": {"index": name}} for name in remove]
        if actions:
            self._client.call("POST", "/_aliases", {"actions": actions})
        _write(self._client, self._cluster, _GENERATIONS, {"serving": numbers.building, "building": 0})
        self._remove(numbers.serving)

    def _remove(self, number: int) -> None:
        for name in self._names(number):
            self._client.call("DELETE", f"/{name}?ignore_unavailable=true")
        self._let_go(number)
        # Otherwise it would count as a consumer that falls behind.
        self._cluster.store.commit([Batch(writes=[Delete(cursor_key(f"opensearch.{number}"))])])

    def _names(self, number: int) -> list[str]:
        indices = self._client.call("GET", f"/_cat/indices/{self._cluster.prefix}-*-v{number}?format=json&h=index")
        return sorted(index["index"] for index in indices)


def _facets(answer: Any) -> Facets:
    counts = {
        name: {bucket["key"]: bucket["doc_count"] for bucket in answer["aggregations"][name]["buckets"]}
        for name in mapping.FACETS
    }
    return Facets(answer["hits"]["total"]["value"], True, counts)


def _document(client: OpenSearch, cluster: Cluster, id: str) -> dict[str, Any]:
    try:
        document: dict[str, Any] = client.call("GET", f"/{cluster.prefix}-sync-state/_doc/{id}")["_source"]
    except NotFound:
        return {}
    return document


def _write(client: OpenSearch, cluster: Cluster, id: str, state: dict[str, Any]) -> None:
    client.call("PUT", f"/{cluster.prefix}-sync-state/_doc/{id}", state)


COPY = Copy("the search index in OpenSearch", _Generation.take_out_erased)
