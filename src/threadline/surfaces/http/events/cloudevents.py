"""CloudEvents over HTTP in its three modes, with the handshake by which a sender of webhooks asks for permission."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.kernel.errors import MalformedBody
from threadline.surfaces.http.answers.body import read_body, without_mark
from threadline.surfaces.http.answers.problem import UnsupportedFormat
from threadline.surfaces.http.answers.routing import PREFLIGHT, Route
from threadline.surfaces.http.callers.access import Access, secrets_of
from threadline.surfaces.http.callers.client_address import client_host
from threadline.surfaces.http.events.ingest import Ingest
from threadline.wire import cloudevents
from threadline.wire.cloudevents_event import is_json, person_kinds

PATH = "/v1/cloudevents"


class CloudEvents:
    """The address for CloudEvents. The credential is in the headers, or in the query as ``access_token``."""

    def __init__(self, ingest: Ingest, access: Access) -> None:
        self._ingest = ingest
        self._access = access
        self._kinds = person_kinds(ingest.engine.catalogue.rules.kinds)

    def routes(self) -> Iterator[Route]:
        """Delivery and its handshake."""
        yield Route("POST", PATH, self.deliver, open_to_browsers=True)
        yield Route("OPTIONS", PATH, self.permit, open_to_browsers=True)

    async def deliver(self, request: Request, names: Mapping[str, str]) -> Response:
        """Answer one delivery: 200 when all that can be recorded is durable, with an outcome for each event."""
        secrets = secrets_of(request)
        credential = await self._access.sender(secrets)
        if credential is None:
            raise await self._access.no_sender(secrets)
        address = client_host(request)
        content_type = request.headers.get("content-type", "").strip()
        structured = cloudevents.is_structured(content_type)
        if structured and not cloudevents.is_readable(content_type):
            # The HTTP binding, 3.2.
            raise UnsupportedFormat(
                f"{content_type[:100]} is a format that is not read here", hint="send application/cloudevents+json"
            )
        body = await read_body(request, known=True)
        if structured or is_json(content_type):
            body = without_mark(body)
        work = partial(
            cloudevents.decode,
            body,
            request.headers,
            source=credential.name,
            workspace=credential.workspace,
            received_at=self._ingest.engine.clock(),
            kinds=self._kinds,
        )
        try:
            decoded = await self._ingest.decode(body, work)
        except MalformedBody as error:
            await self._ingest.refuse_body(body, credential, address, error, secrets)
            raise
        outcome = await self._ingest.take(decoded.results, credential, address, "cloudevents", secrets)
        return Response(msgspec.json.encode(outcome), media_type="application/json")

    async def permit(self, request: Request, names: Mapping[str, str]) -> Response:
        """Let any sender deliver at any rate: what it may record is for its credential to say (webhooks, section 4)."""
        headers = {"allow": "OPTIONS, POST", **PREFLIGHT}
        if "webhook-request-origin" in request.headers:
            headers["webhook-allowed-origin"] = "*"
            headers["webhook-allowed-rate"] = "*"
        return Response(status_code=200, headers=headers)
