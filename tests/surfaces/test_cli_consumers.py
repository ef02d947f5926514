"""Consumers of the feed on the command line, in the doctor and in the metrics."""

from __future__ import annotations

import json
from pathlib import Path

import threadline
from tests.surfaces.cli_stage import call, composed, store
from threadline.engine.delivery.feed_consumer import FeedConsumer, FeedPage
from threadline.engine.delivery.leases import Leases
from threadline.surfaces.http.addresses.gauges import gauges
from threadline.surfaces.http.answers.metrics import Metrics

__all__ = ["call", "composed", "store"]


class Failing:
    name, page_events = "topic:lead-events", 10

    def handle(self, page: FeedPage) -> None:
        raise OSError("the topic is away")


def test_consumer_that_fails_is_listed_and_the_doctor_and_the_metrics_say_so(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    assert "No consumer has read the feed" in call("events", "consumers").out
    with threadline.open(store) as tl:
        engine = tl.engine
        FeedConsumer(engine.store, engine.clock, Failing(), Leases(engine.store, engine.clock, "one")).step()
        page = Metrics().text(gauges(engine), None)
    assert 'threadline_feed_consumer_failures{consumer="topic:lead-events"} 1' in page
    assert 'threadline_feed_consumer_position{consumer="topic:lead-events"} 0' in page
    (view,) = json.loads(call("events", "consumers", "--json").out)
    assert (view["name"], view["failures"], view["problem"]) == ("topic:lead-events", 1, "OSError: the topic is away")
    assert view["behind_since"]
    assert "the topic is away" in call("events", "consumers").out
    assert "topic:lead-events is at position 0, behind since" in call("doctor").out


def test_rewind_moves_a_consumer_and_refuses_what_the_feed_has_not(store: Path, call) -> None:  # type: ignore[no-untyped-def]
    assert "goes on with position 2" in call("events", "rewind", "topic:new", "--to", "1").out
    (view,) = json.loads(call("events", "consumers", "--json").out)
    assert (view["position"], view["problem"]) == (1, "")
    refused = call("events", "rewind", "topic:new", "--to", "1000")
    assert refused.code != 0
    assert "and not 1000" in refused.err
