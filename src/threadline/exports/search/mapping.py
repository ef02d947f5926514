"""The indexes in OpenSearch: their names, their fields, and a query in the language of OpenSearch.

No field comes of a payload: it is stored whole and not indexed, so that no producer can make an index grow by field.
"""

from __future__ import annotations

import re
from typing import Any

from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Recorded
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import SEEN_TYPES_MAX
from threadline.kernel.search import Document, Phrase, Query
from threadline.kernel.time import EARLIEST, LATEST, format_time

EVENTS, DECISIONS = "events", "decisions"
FACETS = {"type": "event_type", "rule": "rule_id", "status": "status"}
FACET_VALUES_MAX = 100
BEGINNINGS_MAX = 1_000
"""Words that one beginning stands for; OpenSearch takes the first 50 unless it is told otherwise."""

_PLAIN_NAME = re.compile(r"[a-z0-9][a-z0-9_]{0,63}")
_CURSOR = re.compile(r"(-?[0-9]{1,18})\.([0-9a-f]{32})")
_KEYWORD = {"type": "keyword", "ignore_above": 1_024}

INDEX: dict[str, Any] = {
    "settings": {
        "index": {"mapping": {"total_fields": {"limit": 50}}},
        "analysis": {
            # The words that the embedded index has: letters and digits, without accents, in lower case.
            "tokenizer": {"words": {"type": "pattern", "pattern": r"[^\p{L}\p{N}\p{M}]+"}},
            "analyzer": {"words": {"type": "custom", "tokenizer": "words", "filter": ["lowercase", "asciifolding"]}},
        },
    },
    "mappings": {
        "dynamic": False,
        "properties": {
            "event_id": _KEYWORD,
            "stream_id": _KEYWORD,
            "event_type": _KEYWORD,
            "links": _KEYWORD,
            "decision_id": _KEYWORD,
            "rule_id": _KEYWORD,
            "rule_version": {"type": "long"},
            "status": _KEYWORD,
            "occurred_at": {"type": "date"},
            "evaluated_at": {"type": "date"},
            "id": _KEYWORD,
            "at": {"type": "long"},
            "text": {"type": "text", "analyzer": "words"},
            "payload": {"type": "object", "enabled": False},
            "trace": {"type": "object", "enabled": False},
        },
    },
}


def alias_of(prefix: str, workspace: str, kind: str) -> str:
    """The name under which a workspace's events or decisions are searched."""
    plain = workspace if _PLAIN_NAME.fullmatch(workspace) else f"h.{short_hash(workspace)}"
    return f"{prefix}-{plain}-{kind}"


def body_of(recorded: Recorded, document: Document) -> dict[str, Any]:
    """An event or a decision as it is indexed."""
    event, properties = recorded.event, recorded.event.properties
    at = min(max(event.occurred_at, EARLIEST), LATEST)
    shared = {
        "id": document.id,
        "stream_id": document.thread,
        "event_type": document.type,
        "at": at,
        "text": document.text,
        "links": list(document.links),
        "occurred_at": format_time(at)[:-4] + "Z",
    }
    if not document.rule:
        return {**shared, "event_id": document.id, "payload": properties}
    return {
        **shared,
        "decision_id": document.id,
        "event_id": properties.get("event_id"),
        "rule_id": document.rule,
        "rule_version": properties.get("version"),
        "status": document.status,
        "evaluated_at": shared["occurred_at"],
        "trace": properties.get("trace"),
    }


def search_body(query: Query) -> dict[str, Any]:
    """A query in the language of OpenSearch. It finds one more than a page has, to know whether there is another."""
    terms: list[dict[str, Any]] = [_phrase(phrase) for phrase in query.phrases if not phrase.is_excluded]
    for field, values in (
        ("event_type", [query.type]),
        ("stream_id", query.threads or ()),
        ("rule_id", [query.rule]),
        ("status", [query.status]),
        ("links", query.links),
    ):
        if any(values):
            terms.append({"terms": {field: list(values)}})
    span = {name: at for name, at in (("gte", query.start), ("lt", query.stop)) if at is not None}
    if span:
        terms.append({"range": {"at": span}})
    excluded = [_phrase(phrase) for phrase in query.phrases if phrase.is_excluded]
    body: dict[str, Any] = {
        "query": {"bool": {"filter": terms, "must_not": excluded}},
        "sort": [{"at": "desc"}, {"id": "desc"}],
        "size": query.limit + 1,
        "_source": False,
        "track_total_hits": query.facets,
    }
    if query.cursor:
        body["search_after"] = _after(query.cursor)
    if query.facets:
        body["aggs"] = {name: {"terms": {"field": field, "size": FACET_VALUES_MAX}} for name, field in FACETS.items()}
    return body


def types_body() -> dict[str, Any]:
    """The types of all documents, and none of these."""
    by_type = {"terms": {"field": FACETS["type"], "size": SEEN_TYPES_MAX}}
    return {"query": {"bool": {"filter": [], "must_not": []}}, "size": 0, "aggs": {"type": by_type}}


def cursor_of(hit: dict[str, Any]) -> str:
    """The cursor behind a hit."""
    at, id = hit["sort"]
    return f"{at}.{id}"


def _after(cursor: str) -> list[Any]:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        message = f"{cursor[:64]!r} is not a cursor; pass the `next` of the page before as it is"
        raise InvalidValue(message, param="cursor")
    return [int(match[1]), match[2]]


def _phrase(phrase: Phrase) -> dict[str, Any]:
    words = " ".join(phrase.words)
    if phrase.is_beginning:
        return {"match_phrase_prefix": {"text": {"query": words, "max_expansions": BEGINNINGS_MAX}}}
    return {"match_phrase": {"text": words}}
