"""The page of the API: one place to begin, every address by its group, with its answers and a form to try it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import quote

from threadline.kernel.event_type import EventType
from threadline.surfaces.event_type_rows import event_type_rows
from threadline.surfaces.http.addresses.public import PAGE_HEADERS
from threadline.surfaces.http.documents.codes import error_codes
from threadline.surfaces.http.documents.openapi_ingest import INGEST_PATHS
from threadline.surfaces.version import package_version

SERVER = "http://server.invalid"
"""Stands in the page for the address under which it is read."""

Entry = tuple[str, str, dict[str, Any]]
"""An address: its method, its path, and what the document says of it."""
_NEEDS = {"token": "token", "userToken": "web token of a user", "writeKey": "write key"}
_CREDENTIALS = (
    "The commands read a write key from `$WRITE_KEY` and a token from `$TOKEN`; a new server prints both once, and "
    "`threadline keys create` makes more."
)
_SCRIPT = """
const token = document.getElementById('token')
document.addEventListener('submit', async (event) => {
  event.preventDefault()
  const { method, path, kind } = event.target.dataset
  const output = event.target.querySelector('output')
  const query = new URLSearchParams()
  let url = path
  for (const { name, value } of event.target.querySelectorAll('input')) {
    if (path.includes(`{${name}}`)) url = url.replace(`{${name}}`, () => encodeURIComponent(value))
    else if (value) query.append(name, value)
  }
  const headers = token.value ? { authorization: `Bearer ${token.value}` } : {}
  if (kind) headers['content-type'] = kind
  try {
    const body = event.target.querySelector('textarea')?.value
    const answer = await fetch(query.size ? `${url}?${query}` : url, { method, headers, body })
    const text = await answer.text()
    let shown = text
    try { shown = JSON.stringify(JSON.parse(text), null, 2) } catch { }
    output.textContent = `${answer.status} ${answer.statusText}\\n${shown}`
  } catch (error) { output.textContent = `${error}` }
})
"""
"""Sends what a form says, with the token of the page's first field, which is kept nowhere."""
_SCRIPT_HASH = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()
API_PAGE_HEADERS = {
    **PAGE_HEADERS,
    "content-security-policy": f"{PAGE_HEADERS['content-security-policy']}; "
    f"script-src 'sha256-{_SCRIPT_HASH}'; connect-src 'self'",
}
_TOKEN = "A token for the forms on this page, which is kept nowhere:"
_FIRST = ("events", "segment", "cloudevents", "people")
"""The groups in which everybody begins; the others follow by their names."""
_BEGIN = (
    ("record", "Record an event. Sent again with the same `key`, it changes nothing."),
    ("person", "Read the person whom it is about: traits, features, segments and the newest events."),
    ("events_of", "Read what happened to them, in order."),
)


def api_page(described: dict[str, Any], types: Iterable[EventType]) -> str:
    """The body of the page, made of the OpenAPI document. `SERVER` in it stands for the address of this server."""
    by_tag: dict[str, list[Entry]] = {}
    entries: dict[str, Entry] = {}
    for path, methods in described["paths"].items():
        for method, body in methods.items():
            entry = (method.upper(), path, body)
            by_tag.setdefault(body["tags"][0], []).append(entry)
            entries[body["operationId"]] = entry
    summaries = {tag["name"]: tag.get("description", "") for tag in described["tags"]}
    tags = sorted(by_tag, key=lambda tag: (_FIRST.index(tag) if tag in _FIRST else len(_FIRST), tag))
    links = "".join(f'<li><a href="#group-{tag}">{tag}</a> {_text(summaries.get(tag, ""))}</li>' for tag in tags)
    links += '<li><a href="#event-types">event types</a> What is declared, and who may say it.</li>'
    links += '<li><a href="#errors">errors</a> Every code and what it means.</li>'
    parts = [
        f"<h1>Threadline API {html.escape(package_version())}</h1><p>{_text(described['info']['description'])}</p>",
        f'<h2 id="begin">Begin here</h2><p>{_text(_CREDENTIALS)}</p><ol>',
        *(_step(entries[name], meaning) for name, meaning in _BEGIN if name in entries),
        f'</ol><p><label>{_TOKEN} <input id="token" type="password" autocomplete="off"></label></p>',
        f'<h2 id="groups">Groups</h2><nav aria-label="Groups of addresses"><ul>{links}</ul></nav>',
    ]
    components = described["components"]
    for tag in tags:
        parts.append(f'<h2 id="group-{tag}">{tag}</h2><p>{_text(summaries.get(tag, ""))}</p>')
        parts += [_operation(components, *alike[0], also=alike[1:]) for alike in _alike(by_tag[tag])]
    return "".join([*parts, _event_types(types), _errors(), f"<script>{_SCRIPT}</script>"])


def _step(entry: Entry, meaning: str) -> str:
    method, path, body = entry
    content = body.get("requestBody", {}).get("content", {})
    kind = next(iter(content), "")
    example = content[kind].get("example") if kind else None
    return (
        f'<li>{_text(meaning)} <a href="#{body["operationId"]}">{html.escape(path)}</a>'
        f"<pre>{html.escape(_curl(method, path, body, kind, example))}</pre></li>"
    )


def _alike(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """Addresses that differ in nothing but their path are told together: Segment's clients know each call by three."""
    order = {path: index for index, path in enumerate(INGEST_PATHS)}
    groups: dict[str, list[Entry]] = {}
    for method, path, body in entries:
        described = {name: value for name, value in body.items() if name != "operationId"}
        groups.setdefault(json.dumps([method, described]), []).append((method, path, body))
    for group in groups.values():
        yield sorted(group, key=lambda entry: order.get(entry[1], 0))


def _operation(components: dict[str, Any], method: str, path: str, body: dict[str, Any], also: Sequence[Entry]) -> str:
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
        f"{_answers(body, components)}{_form(method, path, body, kind, content.get('example'))}"
    )


def _answers(body: dict[str, Any], components: dict[str, Any]) -> str:
    """What can come back: the fields of a good answer, and the problems."""
    parts, problems = [], []
    for status, given in body["responses"].items():
        answer = components["responses"][_kind(given)] if "$ref" in given else given
        if int(status) >= 400:
            problems.append(f"{status} {answer['description'].rstrip('.').lower()}")
            continue
        contents = answer.get("content", {})
        kinds = ", ".join(contents)
        schema: dict[str, Any] = next(iter(contents.values()))["schema"] if contents else {}
        shape = components["schemas"].get(_kind(schema), schema)
        rows = [
            (name, _kind(inside), _meaning(inside.get("description", ""), inside), name in shape.get("required", ()))
            for name, inside in shape.get("properties", {}).items()
        ]
        parts.append(f"<p><code>{status}</code> {_text(answer['description'])} {_text(kinds)}</p>{_fields(rows)}")
    parts.append(f"<p>Problems: {_text('; '.join(problems))}.</p>")
    return f"<details><summary>Answers</summary>{''.join(parts)}</details>"


def _form(method: str, path: str, body: dict[str, Any], kind: str, example: Any) -> str:
    """Fields to try a call with, which the page's script sends to this server."""
    inputs = "".join(
        f"<label><code>{html.escape(parameter['name'])}</code> "
        f'<input name="{html.escape(parameter["name"])}" '
        f'value="{html.escape(str(parameter.get("example", "")))}"></label>'
        for parameter in body.get("parameters", ())
        if parameter["in"] in ("path", "query")
    )
    if kind:
        text = html.escape(json.dumps(example, indent=2, ensure_ascii=False) if example is not None else "{}")
        inputs += f'<label>body <textarea spellcheck="false">{text}</textarea></label>'
    return (
        f'<details><summary>Try it</summary><form data-method="{method}" data-path="{html.escape(path)}" '
        f'data-kind="{html.escape(kind)}">{inputs}<button>Send</button><output></output></form></details>'
    )


def _same(also: Sequence[Entry]) -> str:
    paths = (f'<code id="{html.escape(body["operationId"])}">{html.escape(path)}</code>' for _, path, body in also)
    return f" The same at {' and '.join(paths)}." if also else ""


def _fields(rows: Sequence[tuple[str, str, str, bool]]) -> str:
    if not rows:
        return ""
    cells = "".join(
        f"<tr><td><code>{html.escape(name)}</code>{' *' if always else ''}</td>"
        f"<td>{html.escape(kind)}</td><td>{_text(meaning)}</td></tr>"
        for name, kind, meaning, always in rows
    )
    return f"<table><tr><th>field</th><th>type</th><th>meaning (* always there)</th></tr>{cells}</table>"


def _table(rows: Sequence[tuple[str, str, str, str, bool]]) -> str:
    if not rows:
        return ""
    cells = "".join(
        f"<tr><td><code>{html.escape(name)}</code>{' *' if required else ''}</td><td>{location}</td>"
        f"<td>{html.escape(kind)}</td><td>{_text(meaning)}</td></tr>"
        for name, location, kind, meaning, required in rows
    )
    return f"<table><tr><th>parameter</th><th>in</th><th>type</th><th>meaning (* needed)</th></tr>{cells}</table>"


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " | ".join(str(item) for item in schema["enum"] if item != "")  # what is not given is empty
    if "anyOf" in schema:
        return " or ".join(_kind(item) for item in schema["anyOf"])
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
    url = f"{SERVER}{path}" if not asked else f"'{SERVER}{path}?{'&'.join(asked)}'"
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


def _event_types(types: Iterable[EventType]) -> str:
    rows = "".join(
        f'<tr id="event-type-{html.escape(row.name)}"><td><code>{html.escape(row.name)}</code></td>'
        f"<td>{_text(row.about)}</td><td>{_text(row.speaker)}</td><td>{_text(row.properties)}</td><td>{_text(row.lasts)}</td></tr>"
        for row in event_type_rows(types)
    )
    head = "<th>type</th><th>what happened</th><th>said by</th><th>properties</th><th>never erased by age, because</th>"
    return f'<h2 id="event-types">event types</h2><table><tr>{head}</tr>{rows}</table>'


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
