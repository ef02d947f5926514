"""The request of a webhook that somebody has written: templates of its address, headers and body, filled in.

A value cannot change the form of what it stands in, whatever it is. In JSON an expression inside of quotes becomes a
part of that text, one outside of quotes a value of its own; in an address it is percent-encoded, in a header without
line breaks. So that this can be known of a template before anything is filled in, its statements are ``if`` and
``for``, and no quote is opened in one branch and closed in another. Filling in is confined work; see
`threadline.kernel.confined`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from threadline.kernel.canonical import canonical_json
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import WEBHOOK_BODY_BYTES_MAX, WEBHOOK_HEADER_LENGTH_MAX, WEBHOOK_URL_LENGTH_MAX
from threadline.kernel.templating import BLOCK, FUNCTIONS, TemplateMistake, TemplateSources
from threadline.kernel.time import SECOND, parse_time
from threadline.kernel.webhook import CAUSES

VARIABLES = ("payload", *CAUSES, "at", "type", "id", "person", "test")
"""What templates are filled in with."""
Kind = Literal["json", "form", "xml", "text", "address", "header"]
NESTED_MAX = 6
"""Statements inside one another."""
_TEMPLATES_READY_MAX = 200
_STATEMENTS = ("if", "elif", "else", "endif", "for", "endfor")
_COMMENT = r"\{#.*?(?:#\}|\Z)"
_TOKENS = re.compile(f"(?P<comment>{_COMMENT})|(?P<block>{BLOCK.pattern})", re.DOTALL)
_STATEMENT = re.compile(r"\{%[-+]?\s*(\w*)\s*(.*?)\s*[-+]?%\}", re.DOTALL)
_OPENED, _CLOSED = "\x01", "\x02"
"""Stand around an expression inside of quotes until its value is known. JSON has neither, so that no value does."""
_INSIDE = re.compile(f"{_OPENED}([^{_OPENED}{_CLOSED}]*){_CLOSED}")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_AT_EDGE = re.compile(r"^(not\s+)?loop\.(first|last)$")
_HOST = re.compile(r"https?://[^/?#]*", re.IGNORECASE)
_ROUNDS = ((True, False), (False, True))
"""Of each round of a loop whether it is the first, and whether it is the last."""


class Filling(NamedTuple):
    """A request to be filled in."""

    url: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: str | None
    kind: Kind
    """What the body is."""
    values: Mapping[str, Any]


class Filled(NamedTuple):
    """A request that is filled in, or why it is not."""

    url: str = ""
    headers: Mapping[str, str] = {}
    body: str | None = None
    failure: str = ""
    """Empty for one that is filled in."""


def fill(filling: Filling) -> Filled:
    """The request. It is pure: whatever happens here is a matter of what the filling is made of."""
    part = "url"
    try:
        url = _filled(filling.url, "address", filling.values)
        for part, text in filling.query.items():
            value = quote(_filled(text, "text", filling.values), safe="")
            url += f"{'&' if '?' in url else '?'}{quote(part, safe='')}={value}"
        part = "url"
        _check_address(url, filling.url)
        headers = {}
        for part, text in filling.headers.items():
            headers[part] = _CONTROLS.sub(" ", _filled(text, "header", filling.values)).strip()
            if len(headers[part]) > WEBHOOK_HEADER_LENGTH_MAX:
                raise InvalidValue(f"it has more than {WEBHOOK_HEADER_LENGTH_MAX:,} characters")
        part = "body"
        body = None if filling.body is None else _filled(filling.body, filling.kind, filling.values)
        if body is not None and len(body.encode()) > WEBHOOK_BODY_BYTES_MAX:
            raise InvalidValue(f"it has more than {WEBHOOK_BODY_BYTES_MAX:,} bytes")
        if body is not None and filling.kind == "json" and (problem := _no_json(body)):
            raise InvalidValue(problem)
        return Filled(url, headers, body)
    except TemplateMistake as mistake:
        return Filled(failure=f"`{part}`, line {mistake.line}: {mistake.failure}")
    except (InvalidValue, ValueError, OverflowError) as error:
        return Filled(failure=f"`{part}`: {error}")


def _check_address(url: str, source: str) -> None:
    host = _HOST.match(source)
    if host is None or not url.startswith(host[0]) or url[host.end() : host.end() + 1] not in ("", "/", "?", "#"):
        raise InvalidValue("its host is not the one that is declared")
    if len(url) > WEBHOOK_URL_LENGTH_MAX:
        raise InvalidValue(f"it has more than {WEBHOOK_URL_LENGTH_MAX:,} characters")
    if "{" in source and {".", ".."} & set(unquote(urlsplit(url).path).split("/")):
        raise InvalidValue("a value of dots would lead to another path")


def _filled(text: str, kind: Kind, values: Mapping[str, Any]) -> str:
    if "{" not in text:
        return text
    made = _ready(text, kind).filled("", values)
    return _INSIDE.sub(_inside, made) if kind == "json" else made


@lru_cache(maxsize=_TEMPLATES_READY_MAX)
def _ready(text: str, kind: Kind) -> TemplateSources:
    source = _marked(text) if kind == "json" else text
    filters: dict[str, Callable[..., Any]] = {"sha256": _sha256, "unix": _unix, "lower": _lower, "trim": _trim}
    if kind == "json":
        filters["tojson"] = lambda value: value  # it is written as JSON anyway
    return TemplateSources({"": source}, escaped=False, finalizer=partial(_written, kind), filters=filters)


def _written(kind: Kind, value: Any) -> str:
    """The value of an expression as it stands in a request."""
    if kind == "json":
        return json.dumps(str(value) if isinstance(value, str) else value, ensure_ascii=False, allow_nan=False)
    if kind in ("address", "form"):
        return quote(_plain(value), safe="")
    if kind == "xml":
        return _CONTROLS.sub(" ", _plain(value)).translate(_ENTITIES)
    return _plain(value)


_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def _plain(value: Any) -> str:
    """A value as a part of a text: nothing for null, lists and mappings as JSON."""
    if isinstance(value, str):
        return str(value)
    return "" if value is None else canonical_json(value).decode()


def _inside(match: re.Match[str]) -> str:
    return json.dumps(_plain(json.loads(match[1])), ensure_ascii=False)[1:-1]


def _sha256(value: Any) -> str:
    """The SHA-256 of a text in hexadecimal digits, as receivers of hashed addresses want it."""
    if value is None or value == "":
        raise InvalidValue("there is nothing to hash")
    return hashlib.sha256(_plain(value).encode()).hexdigest()


def _lower(value: Any) -> Any:
    """A text in lower case; null stays null, which the language itself writes as a word."""
    return None if value is None else _plain(value).lower()


def _trim(value: Any) -> Any:
    """A text without blanks around it; null stays null."""
    return None if value is None else _plain(value).strip()


def _unix(value: Any, digits: int = 0) -> int:
    """The seconds since 1970 of a timestamp such as ``2026-03-01T12:00:00Z``; with 3 digits milliseconds, and so on."""
    if not 0 <= digits <= 9:
        raise InvalidValue("`unix` takes 0 to 9 digits")
    return parse_time(str(value)) * int(10**digits) // SECOND


def _no_json(text: str) -> str:
    try:
        json.loads(text, parse_constant=_refused_constant)
    except RecursionError:
        return "what was filled in is nested too deeply"
    except ValueError as error:
        return f"what was filled in is no JSON: {error}"
    return ""


def _refused_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


# --- what is wrong with a template ----------------------------------------------------------------


class Token(NamedTuple):
    """A piece of a template."""

    kind: Literal["text", "expression", "statement"]
    text: str
    line: int


def tokens(source: str) -> Iterator[Token]:
    """The pieces of a template, without comments."""
    at = 0
    for match in _TOKENS.finditer(source):
        if match.start() > at:
            yield Token("text", source[at : match.start()], source.count("\n", 0, at) + 1)
        if match["block"]:
            kind: Literal["expression", "statement"] = "expression" if match[0].startswith("{{") else "statement"
            yield Token(kind, match[0], source.count("\n", 0, match.start()) + 1)
        at = match.end()
    if at < len(source):
        yield Token("text", source[at:], source.count("\n", 0, at) + 1)


def problems_of(source: str, kind: Kind, payload: Sequence[str] | None) -> Iterator[tuple[int, str]]:
    """What is wrong with a template, each with its line; ``payload``: the members that may leave, None: all.

    It fills nothing in, so it takes time in proportion to the source.
    """
    if "{" not in source:
        if kind == "json" and (problem := _no_json(source)):
            yield 1, problem.replace("what was filled in", "this")
        return
    if _CONTROLS.sub("", source.replace("\n", "").replace("\t", "").replace("\r", "")) != source.translate(_SPACES):
        yield 1, "control characters cannot stand in it"
        return
    try:
        paths = TemplateSources({"": source}, escaped=False).paths("")
    except TemplateMistake as mistake:
        yield mistake.line, mistake.failure
        return
    wrong = [*_wrong_paths(source, paths, payload), *_wrong_statements(source, kind)]
    yield from wrong
    if kind == "json" and not wrong:
        drawn = [_skeleton(source, truth=truth) for truth in (True, False)]
        mistakes = [_no_json(text) for text in drawn]
        if all(mistakes):
            line = re.search(r": line (\d+) column", mistakes[0])
            yield (
                int(line[1]) if line else 1,
                mistakes[0].replace("what was filled in", f"with made-up values, {drawn[0].strip()[:120]!r}, it"),
            )


def payload_of(source: str) -> set[str]:
    """The members of a payload that a template without problems takes."""
    paths = TemplateSources({"": source}, escaped=False).paths("") if "{" in source else ()
    return {path.split(".")[1] for path in paths if path.startswith("payload.")}


_SPACES = str.maketrans("", "", "\n\t\r")


def _wrong_paths(source: str, paths: set[str], payload: Sequence[str] | None) -> Iterator[tuple[int, str]]:
    for path in sorted(paths):
        root, _, rest = path.partition(".")
        line = _line_of(source, path)
        if root in FUNCTIONS:
            continue
        if root not in VARIABLES:
            yield line, f"{root!r} is no variable; there are {', '.join(VARIABLES)}"
        elif root == "payload" and payload is not None and rest and (name := rest.partition(".")[0]) not in payload:
            yield line, f"{path!r} may not go there: `payload` does not name {name!r}"


def _line_of(source: str, path: str) -> int:
    match = re.search(rf"\{{[\{{%][^}}]*?(?<![\w.]){re.escape(path)}(?!\w)", source)
    return source.count("\n", 0, match.end()) + 1 if match is not None else 1


def _wrong_statements(source: str, kind: Kind) -> Iterator[tuple[int, str]]:
    state, open_states = _Quotes(), list[_Quotes]()
    for token in tokens(source):
        if token.kind == "text":
            state = state.after(token.text) if kind == "json" else state
            continue
        if state.is_escaping:
            yield token.line, "a backslash stands right before it; a value brings its own"
            return
        if token.kind == "expression":
            continue
        word = _word(token)
        if word not in _STATEMENTS:
            yield token.line, f"`{word}` cannot stand here; the statements of a request are if and for"
            return
        if word in ("if", "for"):
            open_states.append(state)
            if len(open_states) > NESTED_MAX:
                yield token.line, f"more than {NESTED_MAX} statements stand inside one another"
                return
        elif state != (open_states.pop() if word.startswith("end") else open_states[-1]):
            yield token.line, "a quote is opened before it and not closed, or the other way round"
            return


def _word(token: Token) -> str:
    match = _STATEMENT.match(token.text)
    return match[1] if match is not None else ""


class _Quotes(NamedTuple):
    """Whether a place of JSON lies inside of quotes."""

    is_inside: bool = False
    is_escaping: bool = False

    def after(self, text: str) -> _Quotes:
        inside, escaping = self
        for character in text:
            if escaping:
                escaping = False
            elif character == "\\":
                escaping = inside
            elif character == '"':
                inside = not inside
        return _Quotes(inside, escaping)


def _marked(source: str) -> str:
    """The template, with marks around each expression inside of quotes."""
    state, parts = _Quotes(), list[str]()
    for token in tokens(source):
        if token.kind == "text":
            state = state.after(token.text)
        is_inside = token.kind == "expression" and state.is_inside
        parts.append(f"{_OPENED}{token.text}{_CLOSED}" if is_inside else token.text)
    return "".join(parts)


def _skeleton(source: str, *, truth: bool) -> str:
    """What a template of JSON would become if all conditions were so, and each list had two items or none."""
    return _drawn(list(tokens(source)), 0, _Quotes(), truth, ())[0]


def _drawn(
    pieces: list[Token], at: int, state: _Quotes, truth: bool, edges: tuple[tuple[bool, bool], ...]
) -> tuple[str, int]:
    """The text from a token on to the end of its branch, and the token that ends it."""
    parts: list[str] = []
    while at < len(pieces):
        token = pieces[at]
        if token.kind == "text":
            parts.append(token.text)
            state = state.after(token.text)
        elif token.kind == "expression":
            parts.append("x" if state.is_inside else "0")
        elif (word := _word(token)) in ("if", "for"):
            text, at = (_branches if word == "if" else _rounds)(pieces, at, state, truth, edges)
            parts.append(text)
        else:
            break
        at += 1
    return "".join(parts), at


def _branches(
    pieces: list[Token], at: int, state: _Quotes, truth: bool, edges: tuple[tuple[bool, bool], ...]
) -> tuple[str, int]:
    chosen: str | None = None
    while (word := _word(pieces[at])) != "endif":
        is_true = word == "else" or _is_true(pieces[at], truth, edges)
        text, at = _drawn(pieces, at + 1, state, truth, edges)
        if is_true and chosen is None:
            chosen = text
    return chosen or "", at


def _is_true(token: Token, truth: bool, edges: tuple[tuple[bool, bool], ...]) -> bool:
    match = _STATEMENT.match(token.text)
    condition = match[2].strip() if match is not None else ""
    edge = _AT_EDGE.match(condition)
    if edge is not None and edges:
        return edges[-1][edge[2] == "last"] != bool(edge[1])
    return truth != condition.startswith("not ")


def _rounds(
    pieces: list[Token], at: int, state: _Quotes, truth: bool, edges: tuple[tuple[bool, bool], ...]
) -> tuple[str, int]:
    drawn = [_drawn(pieces, at + 1, state, truth, (*edges, edge)) for edge in _ROUNDS]
    at, otherwise = drawn[0][1], ""
    if _word(pieces[at]) == "else":
        otherwise, at = _drawn(pieces, at + 1, state, truth, edges)
    return "".join(text for text, _ in drawn) if truth else otherwise, at
