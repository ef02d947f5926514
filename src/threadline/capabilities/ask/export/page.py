"""The page of an archive: what the files hold, in words, without scripts and without anything from elsewhere."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import msgspec

from threadline.kernel.counted import counted
from threadline.kernel.personal import PersonFile, Subject, shown_time

LINES_SHOWN = 100
"""Of a file: the newest. All of them are in the file."""
BYTES_SHOWN = 256 * 1_024
"""Of the lines of a file that are shown, but one line at least."""
TEXT_SHOWN = 2_000
"""Characters of one value."""
_DEPTH_MAX = 8
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)(:\d\d)?(\.\d+)?Z")
_ID = re.compile("[0-9a-f]{32}")
_TITLES = ("name", "type", "kind", "status", "subject")
"""Members of a line that can stand above it, the best first."""
_OCCURRED = ("occurred_at", "at", "received_at", "saved_at")

_STYLE = """
:root{color-scheme:light dark;--paper:#f4f2ee;--card:#fff;--ink:#1f2328;--soft:#5b6068;--line:#dcd8d0;--accent:#1a5fb4}
@media(prefers-color-scheme:dark){:root{--paper:#16181c;--card:#1f2227;--ink:#eceae6;--soft:#a9adb5;--line:#3a3e46;
--accent:#8ab8ff}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);padding:clamp(1rem,5vw,3rem) 1rem;
font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:56rem;margin:0 auto}
h1{font-size:1.9rem;line-height:1.2;margin:0 0 .75rem;text-wrap:balance}
h2{font-size:1.3rem;margin:0 0 .35rem}
h3{font-size:1rem;margin:0;display:flex;flex-wrap:wrap;gap:.2rem .9rem;align-items:baseline}
h3 time{font-weight:400;color:var(--soft);font-size:.9rem}
p{margin:0 0 1rem;color:var(--soft)}
nav ul{columns:18rem;padding-inline-start:1.2rem;margin:1rem 0 2rem}
section{background:var(--card);border:1px solid var(--line);border-radius:1rem;margin:0 0 1.5rem;
padding:clamp(1rem,4vw,1.75rem);overflow-wrap:anywhere}
article{border-top:1px solid var(--line);padding:.75rem 0}
dl{display:grid;grid-template-columns:minmax(7rem,14rem) minmax(0,1fr);gap:.15rem 1rem;margin:.35rem 0 0}
dl dl{margin:0;grid-template-columns:minmax(5rem,10rem) minmax(0,1fr)}
dl dl dl dl{grid-template-columns:minmax(0,1fr)}
dt{color:var(--soft)}
dd{margin:0;min-width:0}
dd ul{margin:0;padding-inline-start:1.1rem}
pre{white-space:pre-wrap;margin:0;font:inherit}
i{color:var(--soft)}
a{color:var(--accent)}
footer{color:var(--soft);font-size:.9rem;overflow-wrap:anywhere}
:focus-visible{outline:3px solid var(--accent);outline-offset:3px;border-radius:.3rem}
@media(max-width:36rem){dl,dl dl{grid-template-columns:minmax(0,1fr);gap:0}dt{font-size:.85rem;margin-top:.4rem}
dl dl{padding-inline-start:.8rem;border-inline-start:2px solid var(--line)}}
@media print{:root{--paper:#fff;--card:#fff;--ink:#000;--soft:#333;--line:#aaa}body{padding:0}nav{display:none}
section{border:0;padding:0}article{break-inside:avoid}h2{break-after:avoid}}
"""


class Chapter:
    """What the page shows of a file: the newest of its lines, however many pass by and however long they are."""

    def __init__(self, file: PersonFile) -> None:
        self.file = file
        self._lines: deque[tuple[bytes, Sequence[str]]] = deque()
        self._bytes = 0
        self._count = 0

    def add(self, line: bytes, names: Sequence[str]) -> None:
        """Take the next line, as JSON, and its members in the order in which they are read."""
        self._lines.append((line, names))
        self._bytes += len(line)
        self._count += 1
        while len(self._lines) > LINES_SHOWN or (self._bytes > BYTES_SHOWN and len(self._lines) > 1):
            self._bytes -= len(self._lines.popleft()[0])

    def html(self) -> Iterator[str]:
        """The chapter."""
        name = escape(self.file.name)
        yield f'<section id="{name}"><h2>{escape(self.file.title)}</h2><p>{escape(self.file.summary)}</p>'
        if self._count > len(self._lines):
            yield f"<p>The last {len(self._lines)} of {self._count:,}. All of them are in the file {name}.jsonl.</p>"
        for line, names in self._lines:
            members = msgspec.json.decode(line)
            yield from _line({name: members[name] for name in names})
        yield "</section>"


def page_of(subject: Subject, chapters: Sequence[Chapter]) -> bytes:
    """The whole page."""
    return "".join(_parts(subject, chapters)).encode()


def _parts(subject: Subject, chapters: Sequence[Chapter]) -> Iterator[str]:
    rank = subject.engine.catalogue.rules.rank
    names = [identifier.value for identifier in sorted(subject.person.identifiers.values(), key=rank)]
    yield (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"content-security-policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">'
        f"<title>Your data</title><style>{_STYLE}</style></head><body><main><h1>Your data</h1>"
    )
    yield (
        f"<p>This is everything that is stored about {_text(names[0]) if names else 'you'}, as of "
        f"{_text(shown_time(subject.now))}. The other files of this archive hold the same in a form that programs "
        "read, with the ids that are left out here; <code>manifest.json</code> lists them.</p>"
        '<nav aria-label="Contents"><ul>'
    )
    for chapter in chapters:
        yield f'<li><a href="#{escape(chapter.file.name)}">{escape(chapter.file.title)}</a></li>'
    yield "</ul></nav>"
    for chapter in chapters:
        yield from chapter.html()
    yield f"<footer>Reference {escape(subject.person.id)}, {counted(subject.person.position, 'event')}.</footer>"
    yield "</main></body></html>"


def _line(line: Mapping[str, Any]) -> Iterator[str]:
    title = next((name for name in _TITLES if isinstance(line.get(name), str) and line[name]), "")
    when = next((name for name in _OCCURRED if isinstance(line.get(name), str)), "")
    shown_at = f" {_text(line[when])}" if when else ""
    heading = _text(_words(line[title])) if title else ""
    yield f"<article><h3>{heading}{shown_at}</h3>" if title or when else "<article>"
    rest = {name: value for name, value in line.items() if name not in (title, when, "of")}
    if rest.keys() == {"value"}:
        yield from _value(rest["value"], 0)
    else:
        yield from _value(rest, 0)
    yield "</article>"


def _value(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, Mapping) and value and depth < _DEPTH_MAX:
        shown = {name: item for name, item in value.items() if not _says_nothing(item)}
        yield "<dl>"
        for name, item in shown.items():
            yield f"<dt>{_text(_words(name))}</dt><dd>"
            yield from _value(item, depth + 1)
            yield "</dd>"
        yield "</dl>"
    elif isinstance(value, list | tuple) and value and depth < _DEPTH_MAX:
        yield "<ul>"
        for item in value:
            yield "<li>"
            yield from _value(item, depth + 1)
            yield "</li>"
        yield "</ul>"
    else:
        yield _text(value)


def _says_nothing(value: Any) -> bool:
    """Whether a reader learns nothing from it, such as from an id. The file has it."""
    if isinstance(value, list):
        return all(map(_says_nothing, value))
    return value in (None, "", {}) or (isinstance(value, str) and _ID.fullmatch(value) is not None)


def _words(name: str) -> str:
    """A name as it is read: ``first_used_at`` is "First used at". What is no name of ours stays as it is."""
    if not re.fullmatch(r"(threadline\.)?[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        return name
    words = name.removeprefix("threadline.").replace("_", " ")
    return words[0].upper() + words[1:]


def _text(value: Any) -> str:
    """A plain value: whatever it holds cannot become markup, nor turn the direction of what stands around it."""
    if value is None or value in ("", [], {}):
        return "<i>nothing</i>"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and (parts := _TIME.fullmatch(value)):
        return f'<time datetime="{escape(value)}">{parts[1]} {parts[2]} UTC</time>'
    text = str(value)
    more = f" <i>… {len(text) - TEXT_SHOWN:,} more characters are in the file</i>" if len(text) > TEXT_SHOWN else ""
    shown = escape(text[:TEXT_SHOWN])
    return f'<pre dir="auto">{shown}</pre>{more}' if "\n" in text else f"<bdi>{shown}</bdi>{more}"
