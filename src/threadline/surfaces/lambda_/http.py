"""HTTP by Lambda: payloads 2.0 of API Gateway and of function URLs, answered by the application that servers run."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from functools import cache
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.types import Message, Scope

from threadline.kernel.errors import InvalidValue, LimitExceeded, ThreadlineError, Unavailable
from threadline.kernel.limits import LAMBDA_ANSWER_BYTES_MAX
from threadline.surfaces.http.answers.problem import problem
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.lambda_.runtime import Runtime, open_early, runtime

Body = dict[str, Any]

STREAM_SECONDS = 20.0
"""After which an answer that is streamed ends: API Gateway waits 30 seconds, and each of them is paid."""
_HEADS_BYTES = 64 * 1_024
"""More than the headers of any answer take."""
_FUNCTION_URL = ".on.aws"
"""End of a function URL's domain."""
_TEXT = ("text/", "application/json", "application/problem+json", "application/javascript")


class HttpFunction:
    """Answers one request after the other, as Lambda hands them over, on an event loop of its own."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._limits = runtime.composition.open_limits(runtime.settings)
        self._application = Application(runtime.engine, runtime.settings, limits=self._limits)
        self._loop = asyncio.new_event_loop()

    def answer(self, event: Body) -> Body:
        """The answer to an event, in the form of the payload 2.0."""
        self._follow()
        try:
            scope, body = read_request(event)
            status, headers, content = self._loop.run_until_complete(self._run(scope, body))
            return written_answer(status, headers, content)
        except ThreadlineError as error:
            refused = problem(error, str(event.get("rawPath", ""))[:500], "")
            return written_answer(refused.status_code, refused.raw_headers, bytes(refused.body))
        finally:
            self._runtime.rest()

    def _follow(self) -> None:
        if self._runtime.follow():
            before = self._application
            self._application = Application(self._runtime.engine, self._runtime.settings, limits=self._limits)
            self._loop.run_until_complete(before.close())

    def close(self) -> None:
        """End the threads; the engine stays open."""
        self._loop.run_until_complete(self._application.close())
        self._loop.close()

    async def _run(self, scope: Scope, body: bytes) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        parts: list[bytes] = []
        status, headers, is_read, is_ended = 0, [], False, False

        async def receive() -> Message:
            nonlocal is_read
            if is_read:
                await asyncio.sleep(STREAM_SECONDS)
                return {"type": "http.disconnect"}
            is_read = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            nonlocal status, headers, is_ended
            if message["type"] == "http.response.start":
                status, headers = message["status"], list(message["headers"])
                return
            parts.append(message.get("body", b""))
            is_ended = not message.get("more_body", False)

        await self._application(scope, receive, send)
        if not is_ended and not any(value.startswith(b"text/event-stream") for _, value in headers):
            raise Unavailable(f"the answer was not ready after {STREAM_SECONDS:.0f} seconds", hint="ask for less of it")
        return status, headers, b"".join(parts)


def read_request(event: Body) -> tuple[Scope, bytes]:
    """The ASGI scope of an event and its body. Raises `InvalidValue` for what is no payload 2.0."""
    if event.get("version") != "2.0" or "http" not in event.get("requestContext", {}):
        raise InvalidValue(
            "this is no request in the payload format 2.0", hint="set PayloadFormatVersion of the integration to 2.0"
        )
    about = event["requestContext"]
    raw_path = _raw_path(event.get("rawPath", "/"), about)
    headers = [
        (name.lower().encode("latin-1"), value.encode("utf-8")) for name, value in event.get("headers", {}).items()
    ]
    if cookies := event.get("cookies"):
        headers.append((b"cookie", "; ".join(cookies).encode("utf-8")))
    body = event.get("body") or ""
    try:
        content = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
    except ValueError as error:
        raise InvalidValue(f"the body of the event is not Base64: {error}") from None
    scope: Scope = {
        "type": "http",
        # Before 2.4 a stream is told by `receive` that its client is gone, and so can be ended.
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": about["http"]["method"],
        "scheme": "https",
        "path": raw_path.decode(),
        "raw_path": raw_path,
        "query_string": event.get("rawQueryString", "").encode("utf-8"),
        "root_path": "",
        "headers": headers,
        "client": (about["http"].get("sourceIp", ""), 0),
        "server": (about.get("domainName", ""), 443),
    }
    return scope, content


def _raw_path(path: str, about: Body) -> bytes:
    """The path as the client sent it, without the stage.

    An HTTP API hands it over decoded, a function URL as it came. Read alike, ``100%25`` would be decoded twice.
    """
    stage = about.get("stage", "$default")
    if stage != "$default" and f"{path}/".startswith(f"/{stage}/"):
        path = path.removeprefix(f"/{stage}") or "/"
    if about.get("domainName", "").endswith(_FUNCTION_URL):
        return path.encode("ascii", "backslashreplace")
    return quote(path, safe="/:@!$&'()*+,;=").encode()


def written_answer(status: int, headers: Iterable[tuple[bytes, bytes]], content: bytes) -> Body:
    """An answer in the form of the payload 2.0. Raises `LimitExceeded` for one that Lambda would not pass on."""
    named: dict[str, str] = {}
    cookies: list[str] = []
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name == "set-cookie":
            cookies.append(value)
        else:
            named[name] = f"{named[name]}, {value}" if name in named else value
    answer: Body = {"statusCode": status, "headers": named, "isBase64Encoded": False}
    if cookies:
        answer["cookies"] = cookies
    try:
        if content and not named.get("content-type", "").startswith(_TEXT):
            raise UnicodeError
        answer["body"] = content.decode("utf-8")
    except UnicodeError:
        answer["body"], answer["isBase64Encoded"] = base64.b64encode(content).decode(), True
    # As JSON within JSON every quotation mark takes two bytes, and a control character six.
    if len(content) > LAMBDA_ANSWER_BYTES_MAX // 6 - _HEADS_BYTES:
        size = len(msgspec.json.encode(answer))
        if size > LAMBDA_ANSWER_BYTES_MAX:
            raise LimitExceeded(
                f"the answer has {size} bytes, and Lambda passes on {LAMBDA_ANSWER_BYTES_MAX}",
                hint="ask for a smaller page",
            )
    return answer


@cache
def _function() -> HttpFunction:
    return HttpFunction(runtime())


def handler(event: Body, context: Any = None) -> Body:
    """The function behind an HTTP API or a function URL."""
    return _function().answer(event)


open_early(_function)
