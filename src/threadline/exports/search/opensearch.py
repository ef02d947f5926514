"""Speaks to OpenSearch over HTTP: repeats a request while the cluster is busy, and says what a refused one lacks."""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from threadline.kernel.errors import Forbidden, InvalidSetting, NotFound, Unavailable
from threadline.outgoing.connections import FAILURES, Connections, repeated

ATTEMPTS_MAX = 5
PAUSE_SECONDS = 0.2
"""Before the second attempt; before each further one twice as long."""
TIMEOUT_SECONDS = 30.0
BULK_BYTES_MAX = 5_000_000
"""One bulk request, bytes; OpenSearch advises 5 to 15 MB, and takes 100."""

_AGAIN = frozenset({408, 429, 502, 503, 504})
_SETTING = "opensearch"

Action = tuple[dict[str, Any], bytes | None]
"""An action of a bulk request and its document, as JSON."""


class OpenSearch:
    """One cluster. Thread-safe."""

    def __init__(self, url: str, pause: Callable[[float], None] = time.sleep) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:  # a port that is no number, a bracket that is not closed
            raise _no_address() from None
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _no_address()
        self._connections = Connections(url, connect_seconds=TIMEOUT_SECONDS, answer_seconds=TIMEOUT_SECONDS)
        self.where = f"{parts.scheme}://{parts.hostname}:{port or (443 if parts.scheme == 'https' else 80)}"
        """Without credentials."""
        self._path = parts.path.rstrip("/")
        self._headers = {"content-type": "application/json"}
        if parts.username:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
            self._headers["authorization"] = f"Basic {b64encode(login).decode()}"
        self._pause = pause

    def call(self, method: str, path: str, body: Any = None, *, lines: bytes | None = None) -> Any:
        """The answer to a request; every one of ours may be repeated. Raises `NotFound`, `InvalidSetting` for refused
        credentials, `Forbidden` for a missing permission, and `Unavailable`."""
        content = lines if lines is not None else None if body is None else msgspec.json.encode(body)
        headers = {**self._headers, **({"content-type": "application/x-ndjson"} if lines is not None else {})}
        once = partial(self._connections.exchange, method, self._path + path, headers, content)
        try:
            answer = repeated(once, lambda answer: answer.status in _AGAIN, ATTEMPTS_MAX, self._wait)
        except FAILURES as error:
            raise self._unanswered(method, path, f"{type(error).__name__}: {error}") from None
        try:
            decoded = msgspec.json.decode(answer.content) if answer.content else None
        except msgspec.DecodeError:
            decoded = None
        if 200 <= answer.status < 300:
            return decoded
        if answer.status in _AGAIN:
            raise self._unanswered(method, path, f"status {answer.status}")
        raise self._refused(method, path, answer.status, decoded)

    def bulk(self, actions: Iterable[Action]) -> None:
        """Carry actions out, all of them: what is refused for want of room is sent again. A document to delete that is
        not there is no error. Raises `Unavailable`, naming the first that was refused for good."""
        for part in _parts(actions):
            self._bulk(part)

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()

    def _bulk(self, actions: Sequence[Action]) -> None:
        for attempt in range(1, ATTEMPTS_MAX + 1):
            lines = b"".join(
                msgspec.json.encode(head) + b"\n" + (b"" if body is None else body + b"\n") for head, body in actions
            )
            answer = self.call("POST", "/_bulk?refresh=true", lines=lines)
            results = [next(iter(item.values())) for item in answer["items"]]
            refused = [(action, result) for action, result in zip(actions, results, strict=True) if _is_refused(result)]
            final = next((result for _, result in refused if result["status"] not in _AGAIN), None)
            if final is not None:
                raise Unavailable(f"OpenSearch at {self.where} refuses document {final.get('_id')}: {_reason(final)}")
            if not refused:
                return
            actions = [action for action, _ in refused]
            if attempt < ATTEMPTS_MAX:
                self._wait(attempt)
        raise Unavailable(
            f"OpenSearch at {self.where} has no room for {len(actions)} documents: {_reason(refused[0][1])}"
        )

    def _wait(self, attempt: int) -> None:
        self._pause(PAUSE_SECONDS * 2 ** (attempt - 1))

    def _unanswered(self, method: str, path: str, problem: str) -> Unavailable:
        return Unavailable(f"OpenSearch at {self.where} does not answer {method} {path}: {problem}")

    def _refused(self, method: str, path: str, status: int, answer: Any) -> Exception:
        reason = _reason(answer) if isinstance(answer, dict) else ""
        message = f"OpenSearch at {self.where} refuses {method} {path} with {status}: {reason}"
        if status == 401:
            return InvalidSetting(
                message, hint=f"Set {_SETTING} to an address with a user and a password that are valid."
            )
        if status == 403:
            hint = "Give the user of the setting opensearch the permission that the message names."
            return Forbidden(message, hint=hint)
        return NotFound(message) if status == 404 else Unavailable(message)


def _parts(actions: Iterable[Action]) -> Iterable[list[Action]]:
    part: list[Action] = []
    size = 0
    for action in actions:
        part.append(action)
        size += len(action[1] or b"") + 100
        if size >= BULK_BYTES_MAX:
            yield part
            part, size = [], 0
    if part:
        yield part


def _is_refused(result: dict[str, Any]) -> bool:
    return not (200 <= result["status"] < 300 or result["status"] == 404)


def _reason(answer: Any) -> str:
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict):
        return f"{error.get('type', '')}: {error.get('reason', '')}"[:500]
    return str(error or "")[:500]


def _no_address() -> InvalidSetting:
    return InvalidSetting(f"{_SETTING}: give the cluster's address as http://… or https://…")
