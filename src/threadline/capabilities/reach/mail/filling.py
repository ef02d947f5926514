"""What a mail says, made of sources and values alone: templates filled in, MJML, styles put into the elements.

All of it is work on what users have written, by libraries that can be made to hang or to end their process, so it is
done as confined work; see `threadline.kernel.confined`. It imports little: the process that does it starts with this.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from threadline.capabilities.reach.mail.plain_text import VOID, text_of
from threadline.kernel.limits import MAIL_DEPTH_MAX, MAIL_PART_BYTES_MAX
from threadline.kernel.templating import BLOCK, TemplateMistake, TemplateSources, unescaped

SUBJECT_LENGTH_MAX = 500
TEMPLATES_MAX = 100
"""Templates that stay ready to be filled in; with another subject one counts again."""

_BREAKS = re.compile(r"[\x00-\x20\x7f\x85\u2028\u2029]+")
_TAG = re.compile(r"""<!--.*?-->|<(/?)([A-Za-z][\w:-]*)((?:[^<>"']|"[^"]*"|'[^']*')*)>""", re.DOTALL)
_VALUE = re.compile(r"""=\s*(?:"([^"]*)"|'([^']*)')""")
_ALT = re.compile(r"\salt(?=[\s=/>]|$)", re.IGNORECASE)
_STYLE = re.compile(r"""\sstyle\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
_FILLED_IN = re.compile(r"\{#.*?(?:#\}|\Z)|<!--.*?(?:-->|\Z)|" + BLOCK.pattern, re.DOTALL)
"""What is not yet as it will be sent, or is no part of the mail: comments as well."""
_BLANK = "\x00"
_TAG_OR_STYLE = re.compile(r"[<>]|" + _STYLE.pattern, re.IGNORECASE)
_INLINED = re.compile(r"<style|<mj-style[^<>]*\sinline", re.IGNORECASE)
_SPACE = re.compile(r"\r\n|[\t\r\n]")
_ODD = re.compile(r'["\\\x00-\x1f\x7f]|[^\x00-\x7f]')


class Filling(NamedTuple):
    """A mail to be filled in."""

    parts: Mapping[str, str]
    """Part (``subject``, ``html``, ``mjml``, ``text``) -> the name of its source."""
    texts: Mapping[str, str]
    """Name -> source."""
    links: tuple[str, ...]
    """Which of the values are links of our own."""
    values: Mapping[str, Any]


class Filled(NamedTuple):
    """A mail that is filled in, or why it is not."""

    subject: str = ""
    html: str = ""
    """Empty for a mail of text alone."""
    text: str = ""
    failure: str = ""
    """Empty for one that is filled in."""
    source: str = ""
    """The name of the source that failed; empty where it is none of them alone."""
    line: int = 0


class _Failed(Exception):
    """The mail cannot be made."""

    def __init__(self, failure: str, source: str = "", line: int = 0) -> None:
        super().__init__(failure)
        self.filled = Filled(failure=failure, source=source, line=line)


def fill(filling: Filling) -> Filled:
    """The mail. It is pure: whatever happens here is a matter of what the filling is made of."""
    try:
        return _filled(filling)
    except _Failed as failed:
        return failed.filled


def paths_in(texts: Mapping[str, str], name: str) -> set[str] | Filled:
    """What a source takes from the values, such as ``person.traits.plan``; its failure if it is no template."""
    try:
        return _ready_sources(texts)[True].paths(name)
    except TemplateMistake as mistake:
        return Filled(failure=mistake.failure, source=mistake.source, line=mistake.line)


def _filled(filling: Filling) -> Filled:
    parts = filling.parts
    # Escaped, their slashes would be entities, which is right in HTML and puzzles whoever reads the source.
    links = {name: unescaped(filling.values[name]) for name in filling.links if name in filling.values}
    values = {**filling.values, **links}

    def part(name: str) -> str:
        return _part(filling.texts, parts[name], name in ("html", "mjml"), values)

    subject = _BREAKS.sub(" ", part("subject")).strip()
    if not 0 < len(subject) <= SUBJECT_LENGTH_MAX:
        raise _Failed(f"the subject has {len(subject):,} characters, and not 1 to {SUBJECT_LENGTH_MAX}")
    html = ""
    if "mjml" in parts:
        html = _of_mjml(part("mjml"))
    elif "html" in parts:
        html = _inlined(part("html"))
    text = part("text") if "text" in parts else text_of(html)
    for name, content in (("html", html), ("text", text)):
        if len(content.encode("utf-8", "replace")) > MAIL_PART_BYTES_MAX:
            raise _Failed(f"the part {name} has more than {MAIL_PART_BYTES_MAX:,} bytes")
    return Filled(subject, html, text)


def _part(texts: Mapping[str, str], source: str, escaped: bool, values: Mapping[str, Any]) -> str:
    try:
        return _ready_sources(texts)[escaped].filled(source, values)
    except TemplateMistake as mistake:
        raise _Failed(mistake.failure, mistake.source, mistake.line) from None


_ready: dict[tuple[tuple[str, str], ...], dict[bool, TemplateSources]] = {}


def _ready_sources(texts: Mapping[str, str]) -> dict[bool, TemplateSources]:
    """By whether everything is escaped, what fills in these sources."""
    key = tuple(texts.items())
    made = _ready.get(key)
    if made is None:
        if len(_ready) >= TEMPLATES_MAX:
            _ready.clear()
        made = _ready[key] = {is_html: TemplateSources(dict(texts), escaped=is_html) for is_html in (True, False)}
    return made


def _of_mjml(source: str) -> str:
    import mrml

    try:
        # Without the fonts that it would load from elsewhere: whoever serves them would learn who reads the mail.
        return _described(mrml.to_html(_readable(source), None, mrml.RenderOptions(fonts={})).content)
    except (OSError, ValueError) as error:
        if "inline css" in str(error):
            raise _Failed(f"its styles cannot be put into the elements: {_faulty(source) or error}") from None
        raise _Failed(f"what was filled in is no MJML: {error}") from None


def _described(html: str) -> str:
    """The same where each picture without words has an empty `alt`: else its address would be read out."""

    def picture(match: re.Match[str]) -> str:
        written: str = match[0]
        if (match[2] or "").lower() != "img" or _ALT.search(_VALUE.sub("=", match[3])):
            return written
        return f'{written[:4]} alt=""{written[4:]}'

    return _TAG.sub(picture, html)


def _readable(source: str) -> str:
    """MJML as mrml reads it rightly: it writes the values of attributes as Rust shows texts in error messages, with a
    backslash before quotes and backslashes, and codes for line breaks and for all that has no shape of its own.

    White space in a value is a blank, as XML has it (3.3.3). What else would be changed becomes a reference, and
    control characters, for which there is none, are left out.
    """
    depth = 0

    def tag(match: re.Match[str]) -> str:
        nonlocal depth
        written: str = match[0]
        if not match[2]:
            return written  # a comment
        if match[1]:
            depth -= 1
        elif not written.endswith("/>") and match[2].lower() not in VOID:
            depth += 1
            if depth > MAIL_DEPTH_MAX:
                raise _Failed(f"what was filled in has more than {MAIL_DEPTH_MAX} elements inside one another")
        if written.isascii() and written.isprintable() and "\\" not in written and "'" not in written:
            return written
        return f"<{match[1]}{match[2]}{_VALUE.sub(_value, match[3])}>"

    return _TAG.sub(tag, source)


def _value(match: re.Match[str]) -> str:
    written = _SPACE.sub(" ", match[1] if match[1] is not None else match[2])
    return f'="{_ODD.sub(_reference, written)}"'


def _reference(match: re.Match[str]) -> str:
    character = match[0]
    category = unicodedata.category(character)
    if category == "Cc":
        return ""
    is_plain = character > "\x7f" and character.isprintable() and category[0] != "M"
    return character if is_plain else f"&#{ord(character)};"


@cache
def _inliner() -> Callable[[str], str]:
    from css_inline import CSSInliner

    return CSSInliner(keep_at_rules=True, load_remote_stylesheets=False).inline


def _inlined(html: str) -> str:
    if "<style" not in html.lower():
        return html
    try:
        return _inliner()(html)
    except ValueError as error:
        raise _Failed(f"its styles cannot be put into the elements: {_faulty(html) or error}") from None


def _faulty(html: str) -> str:
    """The attribute for which this fails: the library does not name it."""
    return next((problem for _, problem in faulty_styles([html])), "")


def faulty_styles(sources: Sequence[str]) -> Iterator[tuple[tuple[int, int], str]]:
    """Which attribute ``style`` is no CSS, by the number of its source and its line, where styles are put into the
    elements of a mail made of these sources. One with values to be filled in is known only when they are.

    Time is in proportion to the sources, so this is done anywhere.
    """
    if not any(_INLINED.search(source) for source in sources):
        return
    for number, source in enumerate(sources):
        in_tag = False
        written = _FILLED_IN.sub(lambda match: _BLANK + "\n" * match[0].count("\n"), source)
        for match in _TAG_OR_STYLE.finditer(written):
            if match[0] in "<>":
                in_tag = match[0] == "<"
            elif in_tag and _BLANK not in match[0]:
                try:
                    _inliner()(f"<style>p {{ margin: 0 }}</style><p{match[0]}>")
                except ValueError as error:
                    style = match[1] if match[1] is not None else match[2]
                    line = written.count("\n", 0, match.start() + 1) + 1
                    yield (number, line), f"style={style[:200]!r} is no CSS: {error}"
