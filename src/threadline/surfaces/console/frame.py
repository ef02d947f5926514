"""What all pages have in common: templates with their filters, the navigation, the headers that keep a page safe."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

from minijinja import Environment, safe

from threadline.kernel.chart import Chart
from threadline.kernel.counted import counted
from threadline.surfaces.charts.palette import style_sheet
from threadline.surfaces.charts.svg import svg
from threadline.surfaces.console.formats import (
    ago,
    at,
    badges,
    date,
    day_field,
    label,
    lasting,
    measured,
    number,
    outcome,
    percent,
    plain,
    short,
    spoken,
    time_field,
    timed,
    words,
)
from threadline.surfaces.console.naming import called
from threadline.surfaces.console.presets import presets
from threadline.surfaces.console.sentences import EventWords, event_name, gist

HERE = "threadline.surfaces.console"
NO_WORDS = EventWords()
"""Of pages on which no event stands."""
PAGE_HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; font-src 'self'; form-action 'self'; frame-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
"""Of every page. A text that got into a page as markup could run no script, load nothing and send nothing away."""
DOCUMENT_HEADERS = {
    **PAGE_HEADERS,
    "content-security-policy": "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
}
"""Of what somebody else wrote, such as a mail, in a frame: its styles count there, and nothing else."""


def document_headers(pictures: str) -> dict[str, str]:
    """Those of a document, in which pictures below one address are shown as well; empty: none is."""
    policy = DOCUMENT_HEADERS["content-security-policy"]
    shown = policy.replace("img-src data:", f"img-src data: {pictures}/") if pictures else policy
    return {**DOCUMENT_HEADERS, "content-security-policy": shown}


STATIC_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


@cache
def static(name: str) -> tuple[bytes, str, str] | None:
    """A file that pages load: its bytes, its media type and its mark; None if there is none of this name."""
    suffix = name[name.rfind(".") :]
    file = files(HERE).joinpath("static", name)
    if "/" in name or suffix not in STATIC_TYPES or not file.is_file():
        return None
    content = file.read_bytes()
    if suffix == ".css":
        content += style_sheet().encode()
    return content, STATIC_TYPES[suffix], hashlib.sha256(content).hexdigest()[:12]


@lru_cache(maxsize=4)
def environment(words: EventWords) -> Environment:
    """The templates. Every text is escaped, whatever it comes from."""
    made = Environment(loader=_source, undefined_behavior="chainable", trim_blocks=True, lstrip_blocks=True)
    made.auto_escape_callback = lambda name: "html"
    spoken: dict[str, Callable[..., Any]] = {
        "sentence": words.sentence,
        "details": words.details,
        "folded": words.folded,
        "own": words.is_own,
        "properties": words.properties,
    }
    for name, function in {**FILTERS, **spoken}.items():
        made.add_filter(name, function)
    made.add_global("asset", asset)
    return made


def render(template: str, context: Mapping[str, Any], words: EventWords = NO_WORDS) -> str:
    """A template, filled in; ``words`` are those of the events that stand in it."""
    return environment(words).render_template(template, **context)


def _source(name: str) -> str | None:
    package, _, file_name = name.rpartition(":")
    file = files(package or HERE).joinpath("templates", file_name)
    return _without_indentation(file.read_text(encoding="utf-8")) if file.is_file() else None


def _without_indentation(template: str) -> str:
    """A template with which a page of a hundred rows is a third smaller, and the same in a browser: the end of a line
    is as much of a space as its indentation. Behind a block, whose end of line goes, one space stays."""
    return re.sub(r"\n +", "\n", re.sub(r"(?<=%\})\n +", "\n\x00", template)).replace("\x00", " ")


def asset(name: str) -> str:
    """The address of a static file; it changes with its content, so that browsers may keep it for ever."""
    file = static(name)
    assert file is not None, name
    return f"/assets/{name}?v={file[2]}"


def json_text(value: Any) -> str:
    """Plain data as JSON to read."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def path_part(value: Any) -> str:
    """A text as one part of an address, whatever is in it."""
    return quote(str(value), safe="")


def sum_of(rows: Iterable[Mapping[str, Any]], member: str) -> Any:
    """The sum of a member of all rows."""
    return sum(row[member] for row in rows)


def query_text(values: Mapping[str, Any]) -> str:
    """A query of an address; what is empty is left out."""
    return urlencode({name: value for name, value in values.items() if value not in (None, "", [])}, True)


def chart(value: Chart | None, width: int) -> str:
    """A picture as SVG, drawn for a width in pixels; its texts are escaped where it is drawn."""
    return "" if value is None else safe(svg(value, width=width))


def filled_so_far(value: Any) -> str:
    """How much of everybody was looked at, of `threadline.kernel.applied.Filling` in words."""
    share = re.search(r"[0-9]+%", str(value))
    return f"{share[0]} of everybody looked at" if share is not None else "nobody was looked at yet"


def help_text(value: Any) -> str:
    """What a field is for; a name between backticks is code."""
    return safe(re.sub(r"(`+)([^`]+)\1", r"<code>\2</code>", html.escape(str(value)).replace("-&gt;", "→")))


def breakable(value: Any) -> str:
    """A text that breaks after the @ of an address rather than within a word."""
    return safe(html.escape(str(value)).replace("@", "@<wbr>"))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "ago": ago, "at": at, "badges": badges, "date": date, "number": number, "percent": percent, "measured": measured,
    "short": short, "json": json_text,
    "gist": gist, "called": called, "path": path_part, "query": query_text, "chart": chart, "words": words,
    "sum_of": sum_of, "outcome": outcome, "label": label, "breakable": breakable, "day_field": day_field,
    "time_field": time_field, "timed": timed, "help": help_text, "filled": filled_so_far, "event_name": event_name,
    "presets": presets, "counted": counted, "lasting": lasting, "plain": plain, "spoken": spoken,
}  # fmt: skip
"""What templates write behind a bar, beside events in words."""
