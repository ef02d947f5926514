"""The pages for people: a landing page, the documentation of the API, and the OpenAPI document behind it."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from threadline.engine.folding.catalogue import Catalogue
from threadline.surfaces.http.codes import error_codes
from threadline.surfaces.http.health import package_version
from threadline.surfaces.http.openapi import document
from threadline.surfaces.http.openapi_ingest import INGEST_PATHS
from threadline.surfaces.http.problem import server_of
from threadline.surfaces.http.public import PAGE_HEADERS
from threadline.surfaces.http.routing import Route

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
.scope { float: right; opacity: .7; font-size: .9rem } nav { display: flex; flex-wrap: wrap; gap: 0 1rem }
"""
_SERVER = "http://server.invalid"
"""Stands in the page for the address under which it is read."""

Entry = tuple[str, str, dict[str, Any]]
"""An address: its method, its path, and what the document says of it."""
_NEEDS = {"token": "token", "userToken": "web token of a user", "writeKey": "write key"}
_CREDENTIALS = (
    "The commands read a write key from `$WRITE_KEY` and a token from `$TOKEN`; a new server prints both once, and "
    "`threadline keys create` makes more."
)


class Pages:
    """Made once, when the server starts: the operations do not change while it runs."""

    def __init__(self, catalogue: Catalogue) -> None:
        described = document(catalogue.operations, catalogue.public_routes)
        self._openapi = msgspec.json.encode(described)
        self._docs = _page("Threadline API", _docs(described)).encode()
        self._landing = _page("Threadline", _landing()).encode()

    def routes(self) -> Iterator[Route]:
        """The three pages; none of them needs a credential, and none holds data."""
        yield Route("GET", "/", self._show_landing)
        yield Route("GET", "/docs", self._show_docs)
        yield Route("GET", "/openapi.json", self._show_openapi)

    async def _show_landing(self, request: Request, names: Mapping[str, str]) -> Response:
        return Response(self._landing, headers=PAGE_HEADERS, media_type="text/html")

    async def _show_docs(self, request: Request, names: Mapping[str, str]) -> Response:
        # The commands go to the server that is asked, wherever it listens.
        here = html.escape(server_of(request)).encode()
        return Response(self._docs.replace(_SERVER.encode(), here), headers=PAGE_HEADERS, media_type="text/html")

    async def _show_openapi(self, request: Request, names: Mapping[str, str]) -> Response:
        return Response(self._openapi, media_type="application/json")


def _page(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><main>{body}</main></body></html>"
    )


def _landing() -> str:
    links = (
        ("/docs", "the API, address by address"), ("/openapi.json", "the same for machines"),
        ("/readyz", "whether the store can be written to"), ("/metrics", "counts for Prometheus, with an admin token"),
    )  # fmt: skip
    items = "".join(f'<li><a href="{path}"><code>{path}</code></a> {meaning}</li>' for path, meaning in links)
    return (
        f"<h1>Threadline {html.escape(package_version())}</h1><p>One thread of events per person.</p><ul>{items}</ul>"
    )


def _docs(described: dict[str, Any]) -> str:
    by_tag: dict[str, list[Entry]] = {}
    for path, methods in described["paths"].items():
        for method, body in methods.items():
            by_tag.setdefault(body["tags"][0], []).append((method.upper(), path, body))
    tags = sorted(by_tag)
    parts = [
        f"<h1>Threadline API {html.escape(package_version())}</h1><p>{_text(described['info']['description'])}</p>",
        f'<p>{_text(_CREDENTIALS)}</p><nav aria-label="Groups of addresses">',
    ]
    parts += [f'<a href="#group-{tag}">{tag}</a>' for tag in tags] + ['<a href="#errors">errors</a></nav>']
    for tag in tags:
        parts.append(f'<h2 id="group-{tag}">{tag}</h2>')
        parts += [_operation(*alike[0], also=alike[1:]) for alike in _alike(by_tag[tag])]
    return "".join([*parts, _errors()])


def _alike(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Addresses that differ in nothing but their path are told together: Segment's clients know each call by three."""
    order = {path: place for place, path in enumerate(INGEST_PATHS)}
    groups: dict[str, list[Entry]] = {}
    for method, path, body in entries:
        said = {name: each for name, each in body.items() if name != "operationId"}
        groups.setdefault(json.dumps([method, said]), []).append((method, path, body))
    for group in groups.values():
        yield sorted(group, key=lambda entry: order.get(entry[1], 0))


def _operation(method: str, path: str, body: dict[str, Any], also: Sequence[Entry] = ()) -> str:
    schemes = {name for entry in body.get("security", ()) for name in entry}
    needs = " or ".join(_NEEDS[name] for name in sorted(schemes)) or "open to all"
    rows = [
        (
            parameter["name"],
            parameter["in"],
            _kind(parameter["schema"]),
            _meaning(parameter.get("description", ""), parameter["schema"]),
            parameter["required"],
        )
        for parameter in body.get("parameters", ())
    ]
    contents: dict[str, Any] = body.get("requestBody", {}).get("content", {})
    kind = next(iter(contents), "")
    content: dict[str, Any] = contents.get(kind, {})
    schema = content.get("schema", {})
    for name, inside in schema.get("properties", {}).items():
        required = name in schema.get("required", ())
        rows.append((name, "body", _kind(inside), _meaning(inside.get("description", ""), inside), required))
    return (
        f'<h3 id="{html.escape(body["operationId"])}"><span class="scope">{html.escape(needs)}</span>'
        f'<span class="method">{method}</span> <code>{html.escape(path)}</code></h3>'
        f"<p>{_text(body['summary'])} {_text(body.get('description', ''))}{_same(also)}</p>"
        f"{_table(rows)}<pre>{html.escape(_curl(method, path, body, kind, content.get('example')))}</pre>"
    )


def _same(also: Sequence[Entry]) -> str:
    paths = (f'<code id="{html.escape(body["operationId"])}">{html.escape(path)}</code>' for _, path, body in also)
    return f" The same at {' and '.join(paths)}." if also else ""


def _table(rows: Sequence[tuple[str, str, str, str, bool]]) -> str:
    if not rows:
        return ""
    cells = "".join(
        f"<tr><td><code>{html.escape(name)}</code>{' *' if required else ''}</td><td>{place}</td>"
        f"<td>{html.escape(kind)}</td><td>{_text(meaning)}</td></tr>"
        for name, place, kind, meaning, required in rows
    )
    return f"<table><tr><th>parameter</th><th>in</th><th>type</th><th>meaning (* needed)</th></tr>{cells}</table>"


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(str(each) for each in schema["enum"] if each != "")  # what is not given is empty
    if "anyOf" in schema:
        return " or ".join(_kind(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    kind = str(schema.get("format") or schema.get("type") or "any")
    return (
        f"{kind}, {schema['minimum']:,} to {schema['maximum']:,}" if {"minimum", "maximum"} <= schema.keys() else kind
    )


def _meaning(description: str, schema: dict[str, Any]) -> str:
    default = schema.get("default")
    return description if default in (None, "", [], False) else f"{description} Default: {default}.".strip()


def _curl(method: str, path: str, body: dict[str, Any], kind: str, example: Any) -> str:
    asked = []
    for parameter in body.get("parameters", ()):
        name, value = parameter["name"], parameter.get("example")
        if parameter["in"] == "path":
            path = path.replace(f"{{{name}}}", quote(str(value or name), safe=":"))
        elif parameter["in"] == "query" and value is not None:
            asked.append(f"{name}={quote(str(value), safe=':,')}")
    url = f"{_SERVER}{path}" if not asked else f"'{_SERVER}{path}?{'&'.join(asked)}'"
    words = ["curl", *([f"-X {method}"] if method not in ("GET", "POST") or (method == "POST" and not example) else [])]
    schemes = {name for entry in body.get("security", ()) for name in entry}
    if "writeKey" in schemes:
        words.append("-u $WRITE_KEY:")
    elif schemes:
        words.append(f'-H "Authorization: Bearer {"$TOKEN" if "token" in schemes else "$USER_TOKEN"}"')
    words.append(url)
    if example:
        if kind != "application/json":
            words.append(f"\\\n  -H 'Content-Type: {kind}'")
        words.append(f"\\\n  -d '{json.dumps(example, ensure_ascii=False)}'")
    return " ".join(words)


def _errors() -> str:
    rows = "".join(
        f'<tr id="error-{code}"><td><code>{code}</code></td><td>{status}</td><td>{_text(meaning)}</td></tr>'
        for code, status, meaning in error_codes()
    )
    return f'<h2 id="errors">errors</h2><table><tr><th>code</th><th>status</th><th>meaning</th></tr>{rows}</table>'


def _text(text: str) -> str:
    """Escaped, with what stands between backticks as code."""
    parts = html.escape(text).split("`")
    return "".join(part if index % 2 == 0 else f"<code>{part}</code>" for index, part in enumerate(parts))
