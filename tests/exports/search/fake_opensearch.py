"""A stand-in for the endpoints of OpenSearch that are used: it refuses what it does not know."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.capabilities.search_stage import occurs, words


class Cluster:
    """Indexes in memory: name -> id -> document, as refreshed at once."""

    def __init__(self) -> None:
        self.indexes: dict[str, dict[str, dict[str, Any]]] = {}
        self.aliases: dict[str, set[str]] = {}
        """Alias -> names of indexes."""
        self.settings: dict[str, Any] = {}
        self.failures: list[tuple[str, int]] = []
        """(path, status) of answers to come, each given once; a path `item` is that of an item of a bulk request."""
        self.requests: list[tuple[str, str]] = []
        self.lock = threading.Lock()

    def names(self, pattern: str) -> list[str]:
        return sorted(
            name
            for part in pattern.split(",")
            for name in [*self.indexes]
            if fnmatchcase(name, part) or name in self.aliases.get(part, ())
        )

    def failure(self, path: str) -> int:
        for number, (part, status) in enumerate(self.failures):
            if part in path:
                del self.failures[number]
                return status
        return 0

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, Any]:
        path, _, arguments = path.partition("?")
        self.requests.append((method, path))
        if status := self.failure(path):
            reason = "no permissions for [indices:data/write/bulk]" if status == 403 else "busy"
            return status, {"error": {"type": "asked_for", "reason": reason}}
        if match := re.fullmatch(r"/([^/]+)/_doc/([^/]+)", path):
            return self.document(method, match[1], match[2], body)
        if path == "/_bulk":
            return 200, {"items": list(self.bulk(body.decode().split("\n")))}
        if path == "/_aliases":
            return self.turn(json.loads(body)["actions"])
        if match := re.fullmatch(r"/_cat/indices/([^/]+)", path):
            return 200, [{"index": name} for name in self.names(match[1])]
        if match := re.fullmatch(r"/([^/]+)/_search", path):
            return 200, self.search(self.names(match[1]), json.loads(body))
        if match := re.fullmatch(r"/([^/]+)/_delete_by_query", path):
            wanted = set(json.loads(body)["query"]["terms"]["id"])
            for name in self.names(match[1]):
                self.indexes[name] = {id: each for id, each in self.indexes[name].items() if each["id"] not in wanted}
            return 200, {}
        if match := re.fullmatch(r"/([^/]+)/_stats/docs,store", path):
            count = sum(len(self.indexes[name]) for name in self.names(match[1]))
            return 200, {"_all": {"primaries": {"docs": {"count": count}, "store": {"size_in_bytes": count * 100}}}}
        if match := re.fullmatch(r"/([a-z0-9_.-]+)", path):
            return self.index(method, match[1], body, arguments)
        return 400, {"error": {"type": "unknown", "reason": f"{method} {path}"}}

    def document(self, method: str, name: str, id: str, body: bytes) -> tuple[int, Any]:
        if method == "PUT":
            self.indexes.setdefault(name, {})[id] = json.loads(body)
            return 201, {}
        found = self.indexes.get(name, {}).get(id)
        return (404, {"found": False}) if found is None else (200, {"_source": found})

    def index(self, method: str, name: str, body: bytes, arguments: str) -> tuple[int, Any]:
        if method == "PUT":
            if name in self.indexes:
                return 400, {"error": {"type": "resource_already_exists_exception", "reason": name}}
            self.settings = json.loads(body)
            self.indexes[name] = {}
            for alias in self.settings["aliases"]:
                self.aliases.setdefault(alias, set()).add(name)
            return 200, {}
        if name not in self.indexes and "ignore_unavailable" not in arguments:
            return 404, {"error": {"type": "index_not_found_exception", "reason": name}}
        if method == "DELETE":
            self.remove(name)
        return 200, {}

    def remove(self, name: str) -> None:
        self.indexes.pop(name, None)
        for targets in self.aliases.values():
            targets.discard(name)

    def turn(self, actions: list[dict[str, Any]]) -> tuple[int, Any]:
        for action in actions:
            if "add" in action:
                self.aliases.setdefault(action["add"]["alias"], set()).add(action["add"]["index"])
            else:
                self.remove(action["remove_index"]["index"])
        return 200, {}

    def bulk(self, lines: list[str]) -> Iterator[dict[str, Any]]:
        for head, body in zip(lines[::2], lines[1::2], strict=False):
            about, document = json.loads(head)["index"], json.loads(body)
            if status := self.failure("item"):
                yield {"index": {"_id": about["_id"], "status": status, "error": {"type": "t", "reason": "item"}}}
                continue
            self.indexes[about["_index"]][about["_id"]] = document
            yield {"index": {"_id": about["_id"], "status": 201}}

    def search(self, names: list[str], body: dict[str, Any]) -> dict[str, Any]:
        query = body["query"]["bool"]
        found = [
            (document["at"], id, document)
            for name in names
            for id, document in self.indexes[name].items()
            if all(fits(each, document) for each in query["filter"])
            and not any(fits(each, document) for each in query["must_not"])
        ]
        found.sort(key=lambda each: each[:2], reverse=True)
        total = {"value": len(found)}
        counts: dict[str, Any] = {}
        for name, each in body.get("aggs", {}).items():
            values = [document.get(each["terms"]["field"]) for _, _, document in found]
            keys = sorted({value for value in values if value}, key=lambda value: (-values.count(value), value))
            counts[name] = {"buckets": [{"key": key, "doc_count": values.count(key)} for key in keys]}
        if "search_after" in body:
            found = [each for each in found if each[:2] < tuple(body["search_after"])]
        hits = [{"_id": id, "sort": [at, id]} for at, id, _ in found[: body["size"]]]
        return {"hits": {"total": total, "hits": hits}, "aggregations": counts}


def fits(clause: dict[str, Any], document: dict[str, Any]) -> bool:
    ((kind, about),) = clause.items()
    ((field, wanted),) = about.items()
    value = document.get(field)
    if kind == "terms":
        return bool(set(wanted) & set(value if isinstance(value, list) else [value]))
    if kind == "range":
        return wanted.get("gte", value) <= value < wanted.get("lt", value + 1)
    text = words(document[field])
    if kind == "match_phrase":
        return occurs(words(wanted), text, beginning=False)
    assert kind == "match_phrase_prefix", clause
    return occurs(words(wanted["query"]), text, beginning=True)


@contextmanager
def serving() -> Iterator[tuple[str, Cluster]]:
    """The address of a cluster, and the cluster."""
    cluster = Cluster()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            with cluster.lock:
                status, answer = cluster.answer(self.command, self.path, body)
            if status == 599:  # the connection breaks
                self.close_connection = True
                return
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = serve  # noqa: N815

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", cluster
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
