"""The pages of the API: address by address for people, and the OpenAPI document behind it."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.folding.catalogue import Catalogue
from threadline.surfaces.http.answers.problem import server_of
from threadline.surfaces.http.answers.routing import Route
from threadline.surfaces.http.documents.api_page import API_PAGE_HEADERS, SERVER, api_page
from threadline.surfaces.http.documents.openapi import document

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --accent: #00734f; }
@media (prefers-color-scheme: dark) { :root { --accent: #2c9; } }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 60rem; padding: 2rem 1rem 6rem; }
h1 { font-size: 1.6rem } h2 { margin-top: 3rem; border-bottom: 1px solid var(--line) } h3 { margin: 2rem 0 0 }
code, pre { font: 14px/1.45 ui-monospace, monospace; overflow-wrap: anywhere }
pre { background: var(--soft); padding: .8rem; white-space: pre-wrap }
table { border-collapse: collapse; width: 100% }
td, th { text-align: left; vertical-align: top; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid var(--line) }
td:last-child { width: 60% }
@media (max-width: 40rem) { table { display: block; overflow-x: auto } }
a { color: var(--accent) } .method { color: var(--accent); font-weight: 700 }
.scope { float: right; opacity: .7; font-size: .9rem } summary { cursor: pointer; margin: .6rem 0 }
form label { display: block; margin: .3rem 0 }
input, textarea { font: inherit; max-width: 100%; box-sizing: border-box }
textarea { width: 100%; min-height: 8rem } output { display: block; white-space: pre-wrap; overflow-wrap: anywhere }
"""


class Pages:
    """Each made when it is first asked for, and once: the operations do not change, and a function of Lambda that
    answers one request must not begin with the description of all."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    @cached_property
    def _described(self) -> dict[str, Any]:
        return document(self._catalogue.operations, self._catalogue.public_routes)

    @cached_property
    def _openapi(self) -> bytes:
        return msgspec.json.encode(self._described)

    @cached_property
    def _docs(self) -> bytes:
        return _page(
            "Threadline API", api_page(self._described, self._catalogue.event_types.declared.values())
        ).encode()

    def routes(self) -> Iterator[Route]:
        """The two pages; neither of them needs a credential, and neither holds data."""
        yield Route("GET", "/docs", self._show_docs)
        yield Route("GET", "/openapi.json", self._show_openapi)

    async def _show_docs(self, request: Request, names: Mapping[str, str]) -> Response:
        # The commands go to the server that is asked, wherever it listens.
        here = html.escape(server_of(request)).encode()
        return Response(self._docs.replace(SERVER.encode(), here), headers=API_PAGE_HEADERS, media_type="text/html")

    async def _show_openapi(self, request: Request, names: Mapping[str, str]) -> Response:
        return Response(self._openapi, media_type="application/json")


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><main>{body}</main></body></html>"
    )
