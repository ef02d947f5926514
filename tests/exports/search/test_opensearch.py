"""The index in OpenSearch finds what the embedded one finds: on a fake, and with OPENSEARCH_URL on a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import pytest

from tests.capabilities.deciding_stage import RISK
from tests.capabilities.search_stage import find, searching
from tests.exports.search import fake_opensearch
from tests.exports.search.index_stage import erase
from threadline.app import MEMORY, open_engine
from threadline.capabilities.ask.search.documents import document_of
from threadline.capabilities.ask.search.naming import named_people
from threadline.engine.delivery.feed_consumer import FeedConsumer, consumers
from threadline.engine.delivery.leases import Leases
from threadline.engine.erasure.erased_ids import erased_since
from threadline.exports.search import opensearch, opensearch_index
from threadline.exports.search.embedded import EmbeddedIndex
from threadline.exports.search.opensearch import OpenSearch
from threadline.exports.search.opensearch_index import Cluster, OpenSearchIndex
from threadline.kernel.errors import Forbidden, InvalidSetting, Unavailable
from threadline.kernel.time import SECOND
from threadline.settings import Settings

ON_FAKE = not os.environ.get("OPENSEARCH_URL")


class Stage(NamedTuple):
    asked: Any
    cluster: Any
    """The fake's; None on a real one."""
    url: str
    prefix: str

    def index(self) -> OpenSearchIndex:
        return self.asked.engine.search  # type: ignore[no-any-return]

    def another(self) -> OpenSearchIndex:
        """The index as another process has it."""
        engine = self.asked.engine
        about = Cluster(
            self.url,
            self.prefix,
            engine.store,
            engine.damage,
            document_of,
            partial(erased_since, engine.store),
            engine.clock,
        )
        leases = Leases(engine.store, engine.clock, uuid4().hex)
        return OpenSearchIndex(about, lambda handler: FeedConsumer(engine.store, engine.clock, handler, leases))


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(opensearch, "PAUSE_SECONDS", 0.001)
    prefix = f"t{uuid4().hex[:12]}"
    if not ON_FAKE:
        made = Stage(searching(RISK), None, os.environ["OPENSEARCH_URL"], prefix)
        made.asked.engine.search = made.another()
        yield made
        OpenSearch(made.url).call("DELETE", f"/{prefix}-*")
        return
    with fake_opensearch.serving() as (url, cluster):
        made = Stage(searching(RISK), cluster, url, prefix)
        made.asked.engine.search = made.another()
        yield made
        made.index().close()


def events(stage: Stage, count: int = 6) -> list[str]:
    """Events and the decisions about them, indexed."""
    texts = ["red shoes", "Red-Café", "日本語", "shoe", "x_y red", "O'Neill"]
    ids = [
        stage.asked.tell(
            "applied", user_id=f"u{n % 2}", at=stage.asked.now - n * SECOND, properties={"score": 91, "t": texts[n % 6]}
        )["id"]
        for n in range(count)
    ]
    stage.index().catch_up(10_000)
    return ids


QUERIES: list[dict[str, Any]] = [
    {},
    {"text": "red"},
    {"text": '"red shoes"'},
    {"text": "cafe"},
    {"text": "sho*"},
    {"text": "applied -red"},
    {"text": "本"},
    {"text": "y"},
    {"text": "neill"},
    {"kind": "decision"},
    {"kind": "event", "text": "red"},
    {"rule": "risk", "status": "Rejected"},
    {"rule": "risk", "status": "Approved"},
    {"type": "applied", "person": "u1"},
    {"text": "-shoes", "limit": 2},
]


def test_it_finds_what_the_embedded_index_finds(stage: Stage) -> None:
    events(stage)
    engine = stage.asked.engine
    embedded = EmbeddedIndex(
        None, engine.log, document_of, partial(erased_since, engine.store), partial(named_people, engine)
    )
    for query in QUERIES:
        answers = []
        for index in (stage.index(), embedded):
            asked = stage.asked
            asked.engine.search, before = index, asked.engine.search
            facets = asked.ask("search_find", facets=True, **query)["facets"]
            answers.append((sorted(find(asked, **query)), {**facets, "counted": 0}))
            asked.engine.search = before
        assert answers[0] == answers[1], query


def test_the_types_of_a_workspace_are_those_that_the_embedded_index_has(stage: Stage) -> None:
    events(stage, 2)
    stage.asked.tell("later", user_id="u0", workspace="other")
    engine = stage.asked.engine
    embedded = EmbeddedIndex(
        None, engine.log, document_of, partial(erased_since, engine.store), partial(named_people, engine)
    )
    for index in (stage.index(), embedded):
        index.catch_up(100)
        assert index.types("default") == ({"applied", "decision_made"}, True)
        assert index.types("other") == ({"later"}, True)
        assert index.types("nobody's") == (set(), True)
    stage.asked.tell("newest", user_id="u0")
    assert [index.types("default").is_complete for index in (stage.index(), embedded)] == [False, False]


def test_people_are_found_by_words_of_their_events_and_a_note_says_what_is_not(stage: Stage) -> None:
    asked = stage.asked
    asked.tell("identify", user_id="u1", properties={"first_name": "Ada", "last_name": "Lovelace"})
    asked.tell("page_viewed", user_id="u2", properties={"title": "Lovelace"})
    asked.engine.search = stage.index()
    asked.engine.search.catch_up(100)
    for text in ("lovel", "ADA", "ovelac"):
        answer = asked.ask("people_find", text=text)
        assert [person["name"] for person in answer["people"]] == ["Ada Lovelace"], text
        assert (answer["total"], "OpenSearch has events" in answer["note"]) == (None, True), answer
    assert answer["people_read"] == 2


def test_networks_and_timelines_come_of_it_as_well(stage: Stage) -> None:
    first = events(stage, 1)[0]
    assert len(stage.asked.ask("search_correlate", id=first)["links"]) == 2
    assert [each["what"] for each in stage.asked.ask("search_timeline", id="u0")["entries"]] == ["decision", "event"]


def test_an_answer_says_up_to_where_it_is_complete(stage: Stage) -> None:
    assert stage.asked.ask("search_find") == {"hits": [], "next": "", "position": 0, "complete": True, "facets": None}
    events(stage, 1)
    stage.asked.tell("later", user_id="u0")
    answer = stage.asked.ask("search_find")
    assert (answer["position"], answer["complete"]) == (2, False)
    stage.index().catch_up(10)
    answer = stage.asked.ask("search_find")
    assert (answer["position"], answer["complete"], len(answer["hits"])) == (3, True, 3)
    status = stage.asked.ask("search_status")
    assert (status["engine"], status["documents"], status["complete"]) == ("opensearch", 3, True)


def test_an_erased_event_is_gone_although_nothing_new_has_come(stage: Stage) -> None:
    ids = events(stage)
    erase(stage.asked.engine.store, ids[2:4])
    stage.index().catch_up(10)
    status = stage.asked.ask("search_status")
    assert status["documents"] == 2 * 6 - 2
    assert find(stage.asked, "本", kind="event") == []


def test_built_anew_it_is_searched_all_the_time_and_is_the_same(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opensearch_index._Generation, "page_events", 4)
    ids = events(stage)
    before = find(stage.asked)
    stage.index().rebuild()
    assert find(stage.asked) == before
    later = stage.asked.tell("later", user_id="u0", workspace="Other place §")["id"]
    stage.index().close()
    other = stage.another()
    other.catch_up(4)
    other.close()
    assert find(stage.asked, type="applied") == [id for id in before if id in ids]
    if ON_FAKE:
        assert {name.rpartition("-")[2] for name in stage.cluster.indexes} == {"v1", "v2", "state"}
    stage.index().catch_up(10_000)
    assert find(stage.asked) == before
    assert find(stage.asked, workspace="Other place §") == [later]
    assert [each.name for each in consumers(stage.asked.engine.store)] == ["opensearch.2"]
    if ON_FAKE:
        assert {name.rpartition("-")[2] for name in stage.cluster.indexes} == {"v2", "state"}
    # A workspace that is new after the turn has its alias, too.
    newest = stage.asked.tell("later", user_id="u0", workspace="new")["id"]
    stage.index().catch_up(10_000)
    assert find(stage.asked, workspace="new") == [newest]


def test_two_workspaces_have_indexes_of_their_own(stage: Stage) -> None:
    events(stage, 1)
    stage.asked.tell("applied", user_id="x", workspace="other", properties={"score": 1})
    stage.index().catch_up(10)
    assert len(find(stage.asked, workspace="other")) == len(find(stage.asked, "x", workspace="other")) > 0
    assert find(stage.asked, "x") == []


if ON_FAKE:

    @pytest.mark.parametrize(
        "failures",
        [[("_bulk", 429)], [("_bulk", 503), ("_bulk", 599)], [("item", 429), ("item", 429)], [("sync-state", 502)] * 3],
    )
    def test_what_fails_for_a_while_is_repeated(stage: Stage, failures: list[tuple[str, int]]) -> None:
        stage.cluster.failures += failures
        assert len(events(stage, 3)) == 3
        assert len(find(stage.asked)) == 6
        assert stage.cluster.failures == []

    @pytest.mark.parametrize("failures", [[("_bulk", 503)] * 5, [("item", 400)], [("sync-state", 503)] * 11])
    def test_a_page_that_could_not_be_indexed_comes_again(stage: Stage, failures: list[tuple[str, int]]) -> None:
        stage.asked.tell("applied", user_id="u0", properties={"score": 91})
        stage.cluster.failures += failures
        for _ in range(12):
            stage.asked.now += 3_600 * SECOND
            try:
                if stage.index().catch_up(10).is_complete:
                    break
            except Unavailable:
                continue
        assert len(find(stage.asked)) == 2

    def test_refused_credentials_and_permissions_are_errors_that_say_so(stage: Stage) -> None:
        stage.cluster.failures += [("sync-state", 401)]
        with pytest.raises(InvalidSetting, match="with 401") as refused:
            stage.asked.ask("search_find")
        assert "opensearch" in refused.value.hint
        stage.cluster.failures += [("sync-state", 403)]
        with pytest.raises(Forbidden, match=r"indices:data/write/bulk"):
            stage.asked.ask("search_find")

    def test_no_payload_makes_a_field(stage: Stage) -> None:
        events(stage, 1)
        mappings = stage.cluster.settings["mappings"]
        assert mappings["dynamic"] is False
        assert mappings["properties"]["payload"] == {"type": "object", "enabled": False}
        assert stage.cluster.settings["settings"]["index"]["mapping"]["total_fields"]["limit"] <= 50


@pytest.mark.parametrize("url", ["search.example", "ftp://search.example", "https://", "http://a:b", "http://["])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidSetting):
        OpenSearch(url)
    with pytest.raises(InvalidSetting):
        open_engine(settings=Settings(store=MEMORY, opensearch=url))


def test_a_cluster_that_is_not_there_is_an_error_that_names_it_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opensearch, "PAUSE_SECONDS", 0.001)
    with pytest.raises(Unavailable, match=r"http://127.0.0.1:1 ") as caught:
        OpenSearch("http://ada:secret@127.0.0.1:1").call("GET", "/")
    assert "secret" not in str(caught.value)
