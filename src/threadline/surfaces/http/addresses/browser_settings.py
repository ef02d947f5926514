"""What browser clients download before they send: the settings of their source, here the same for everybody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.kernel.errors import NotFound
from threadline.surfaces.http.answers.problem import scheme_of
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.callers.access import Access, secrets_of

RUDDERSTACK = "/sourceConfig"
"""Where RudderStack's client asks under its `configUrl`, with a slash at the end."""
SEGMENT = {
    "/v1/projects/{key}/settings": "Segment.io",
    "/customerio/v1/projects/{key}/settings": "Customer.io Data Pipelines",
}
"""Where Segment's client asks under its `cdnURL`, and Customer.io's, which is made of it -> the name of the service to
send to. A client that finds a second name here downloads code for it from its maker, so that one answer cannot do."""


class BrowserSettings:
    """The settings of a write key. They name no destination: what is sent goes to this server and nowhere else."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def routes(self) -> Iterator[Route]:
        """The addresses of the clients."""
        yield Route("GET", RUDDERSTACK, self.rudderstack, open_to_browsers=True)
        for path, service in SEGMENT.items():
            yield Route("GET", path, partial(self.segment, service), open_to_browsers=True)

    async def rudderstack(self, request: Request, names: Mapping[str, str]) -> Response:
        """Answer `@rudderstack/analytics-js`, whose write key is the user of Basic authorization or in the query."""
        secrets = secrets_of(request)
        credential = await self._access.sender(secrets)
        if credential is None:
            raise await self._access.no_sender(secrets)
        source = {"id": credential.name, "name": credential.name, "enabled": True, "config": {}, "destinations": []}
        return _answer({"source": source})

    async def segment(self, service: str, request: Request, names: Mapping[str, str]) -> Response:
        """Answer `@segment/analytics-next` and what is made of it, which then send to where they have asked."""
        if await self._access.sender_in_body(names["key"]) is None:
            raise NotFound("there is no such write key", hint="threadline keys create --name NAME makes one")
        own = {"apiKey": names["key"], "apiHost": f"{request.url.netloc}/v1", "protocol": scheme_of(request)}
        return _answer({"integrations": {service: own}, "plan": {}, "metrics": {"sampleRate": 0}})


def _answer(settings: dict[str, Any]) -> Response:
    # A proxy's cache would hand the settings of one host to another.
    return Response(msgspec.json.encode(settings), headers={"cache-control": "no-store"}, media_type="application/json")
