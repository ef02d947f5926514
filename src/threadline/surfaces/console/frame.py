"""What all pages have in common: templates with their filters, the navigation, the headers that keep a page safe."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

from minijinja import Environment, safe

from threadline.kernel.chart import Chart
from threadline.kernel.time import DAY, HOUR, MINUTE, SECOND, format_time, parse_time
from threadline.surfaces.charts.palette import style_sheet
from threadline.surfaces.charts.svg import svg
from threadline.surfaces.console.naming import called

HERE = "threadline.surfaces.console"
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
STATIC_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_UNSAID = frozenset({"policy", "kind", "occurrence", "draw", "provider_id", "transactional"})
_ID = re.compile(r"[0-9a-f]{12,}([./]|$)")
"""Members that say nothing to a reader of a list; the page of the event has them."""
_SHARES = frozenset({"removal", "lift", "rate"})
_STEPS = ((DAY * 365, "y"), (DAY * 30, "mo"), (DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"))


@cache
def static(name: str) -> tuple[bytes, str, str] | None:
    """A file that pages load: its bytes, its media type and its mark; None if there is none of this name."""
    suffix = name[name.rfind(".") :]
    found = files(HERE).joinpath("static", name)
    if "/" in name or suffix not in STATIC_TYPES or not found.is_file():
        return None
    content = found.read_bytes()
    if suffix == ".css":
        content += style_sheet().encode()
    return content, STATIC_TYPES[suffix], hashlib.sha256(content).hexdigest()[:12]


@cache
def environment() -> Environment:
    """The templates. Every text is escaped, whatever it comes from."""
    made = Environment(loader=_source, undefined_behavior="chainable", trim_blocks=True, lstrip_blocks=True)
    made.auto_escape_callback = lambda name: "html"
    for name, each in FILTERS.items():
        made.add_filter(name, each)
    made.add_global("asset", asset)
    return made


def render(template: str, context: Mapping[str, Any]) -> str:
    """A template, filled in."""
    return environment().render_template(template, **context)


def _source(name: str) -> str | None:
    found = files(HERE).joinpath("templates", name)
    return found.read_text(encoding="utf-8") if found.is_file() else None


def asset(name: str) -> str:
    """The address of a static file; it changes with its content, so that browsers may keep it for ever."""
    found = static(name)
    assert found is not None, name
    return f"/assets/{name}?v={found[2]}"


def ago(time: str | None, now: int) -> str:
    """How long ago an instant was, or how long ahead it is, in its largest unit."""
    if not time:
        return ""
    apart = now - parse_time(time)
    amount = next((f"{abs(apart) // size} {unit}" for size, unit in _STEPS if abs(apart) >= size), "")
    if not amount:
        return "now"
    return f"{amount} ago" if apart > 0 else f"in {amount}"


def at(time: str | None) -> str:
    """An instant to the second, in UTC."""
    return "" if not time else f"{format_time(parse_time(time))[:19].replace('T', ' ')} UTC"


def date(time: str | None) -> str:
    """The day of an instant, in UTC."""
    return "" if not time else time[:10]


def number(value: Any) -> str:
    """A number with its thousands apart; anything else as it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return "–" if value is None else str(value)
    if isinstance(value, int) or value.is_integer():
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:,.4g}" if abs(value) < 1_000 else f"{value:,.2f}".replace(",", "\u202f")


def percent(value: Any, digits: int = 1) -> str:
    """A share of one as per cent."""
    return "–" if value is None else f"{100 * value:.{digits}f}\u202f%"


def measured(value: Any, name: str) -> str:
    """A number of an answer as its name says what it is: a share as per cent, seconds in their two largest units."""
    if value is None or not isinstance(value, (int, float)) or isinstance(value, bool):
        return number(value)
    if name.startswith("share") or name in _SHARES:
        return percent(value)
    return _lasting(value) if name.startswith("seconds") else number(value)


def _lasting(seconds: float) -> str:
    parts: list[str] = []
    rest = round(seconds)
    for size, unit in _STEPS:
        amount, rest = divmod(rest, size // SECOND)
        if amount or parts:
            parts.append(f"{amount}\u202f{unit}" if amount else "")
        if len(parts) == 2:
            break
    return " ".join(filter(None, parts)) or "0\u202fs"


def short(text: Any, length: int = 60) -> str:
    """The beginning of a long text."""
    shown = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)
    return shown if len(shown) <= length else f"{shown[: length - 1]}…"


def words(name: Any) -> str:
    """A name as words: ``purchase_completed`` is “purchase completed”."""
    return str(name).replace("_", " ").replace(".", " › ")


def gist(values: Mapping[str, Any], length: int = 90) -> str:
    """The plain members of an object in one line, such as the properties of an event in a list."""
    plain = (
        f"{words(name)} {value}"
        for name, value in values.items()
        if isinstance(value, (str, int, float)) and value != "" and name not in _UNSAID and not _ID.match(str(value))
    )
    return short(" · ".join(plain), length)


def json_text(value: Any) -> str:
    """Plain data as JSON to read."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def path_part(value: Any) -> str:
    """A text as one part of an address, whatever is in it."""
    return quote(str(value), safe="")


def sum_of(rows: Iterable[Mapping[str, Any]], member: str) -> Any:
    """The sum of a member of all rows."""
    return sum(each[member] for each in rows)


def query_text(values: Mapping[str, Any]) -> str:
    """A query of an address; what is empty is left out."""
    return urlencode({name: value for name, value in values.items() if value not in (None, "", [])}, True)


def chart(value: Chart | None) -> str:
    """A picture as SVG; its texts are escaped where it is drawn."""
    return "" if value is None else safe(svg(value))


FILTERS: Mapping[str, Callable[..., Any]] = {
    "ago": ago, "at": at, "date": date, "number": number, "percent": percent, "measured": measured,
    "short": short, "json": json_text,
    "gist": gist, "called": called, "path": path_part, "query": query_text, "chart": chart, "words": words,
    "sum_of": sum_of,
}  # fmt: skip
"""What templates write behind a bar."""
