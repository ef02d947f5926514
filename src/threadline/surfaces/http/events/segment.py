"""Segment's HTTP Tracking API, on both families of its paths, for every Segment and RudderStack client as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.credentials import fresh_key
from threadline.kernel.errors import MalformedBody
from threadline.kernel.event import GLOBAL_PRIVACY_CONTROL
from threadline.surfaces.http.answers.body import read_body, without_mark
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.access import Access, secrets_of
from threadline.surfaces.http.callers.client_address import client_host
from threadline.surfaces.http.events.ingest import Ingest
from threadline.wire import segment

LETTERS = {"identify": "i", "track": "t", "page": "p", "screen": "s", "group": "g", "alias": "a"}
"""Browser clients send to one letter."""
BATCHES = ("/v1/batch", "/v1/import", "/v1/b", "/b", "/beacon/v1/batch")


class Segment:
    """The calls of the API."""

    def __init__(self, ingest: Ingest, access: Access) -> None:
        self._ingest = ingest
        self._access = access

    def routes(self) -> Iterator[Route]:
        """Every path that a client of this API may use."""
        for kind, letter in LETTERS.items():
            for path in (f"/v1/{kind}", f"/v1/{letter}", f"/{letter}"):
                yield Route("POST", path, partial(self.call, kind), open_to_browsers=True)
        for path in BATCHES:
            yield Route("POST", path, partial(self.call, None), open_to_browsers=True)

    async def call(self, kind: str | None, request: Request, names: Mapping[str, str]) -> Response:
        """Answer one request: 200 when all that can be recorded is durable, with an outcome for each message."""
        secrets = secrets_of(request)
        credential = await self._access.sender(secrets)
        body = without_mark(await read_body(request, known=credential is not None))
        address = client_host(request)
        if credential is None:
            # Before the messages are read: whoever has no key must not be worth more work than that.
            key = await self._ingest.decode(body, lambda pause=None: segment.write_key(body))
            credential = await self._access.sender_in_body(key)
            if credential is None:
                raise await self._access.no_sender(secrets)
            secrets = (*secrets, key)
        work = partial(
            segment.decode,
            body,
            kind=kind,
            source=credential.name,
            workspace=credential.workspace,
            received_at=self._ingest.engine.clock(),
            fresh_key=fresh_key,
            marks=(GLOBAL_PRIVACY_CONTROL,) if request.headers.get("sec-gpc") == "1" else (),
        )
        try:
            decoded = await self._ingest.decode(body, work)
        except MalformedBody as error:
            await self._ingest.refuse_body(body, credential, address, error, secrets)
            raise
        secrets = (*secrets, decoded.write_key)
        outcome = await self._ingest.take(decoded.results, credential, address, "segment", secrets)
        return Response(msgspec.json.encode(outcome), media_type="application/json")
