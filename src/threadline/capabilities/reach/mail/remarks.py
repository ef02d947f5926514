"""What is likely not meant in a mail that is filled in, or is punished by those who filter mail."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import urlsplit

from threadline.capabilities.reach.mail.message import Message
from threadline.capabilities.reach.mail.order import PREFERENCES, UNSUBSCRIBE

CLIPPED_BYTES = 102_000
"""Gmail shows no more of an HTML part."""
SUBJECT_SHOWN = 70
LOUD_LETTERS = 8
"""A subject of so many letters is no abbreviation."""
WORDS_MIN = 5
"""Words beside pictures: filters take a mail of pictures alone for one that hides its words."""
SHORTENERS = frozenset({"bit.ly", "tinyurl.com", "goo.gl", "t.co", "ow.ly", "is.gd", "buff.ly", "rebrand.ly"})
_INSIDE = re.compile(
    r"localhost|.*\.(localhost|local|test|invalid|internal)|127\.[\d.]+|10\.[\d.]+|192\.168\.[\d.]+|::1"
)
_HOST = re.compile(r"(?:https?://)?((?:[a-z0-9-]+\.)+[a-z]{2,})(?:[/?#:]\S*)?", re.IGNORECASE)
_SCHEMES = ("http", "https", "mailto", "tel", "sms")


class _Link(NamedTuple):
    address: str
    words: str


class _Picture(NamedTuple):
    address: str
    has_words: bool


class _Reader(HTMLParser):
    """Collects links, pictures and words."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[_Link] = []
        self.pictures: list[_Picture] = []
        self.words: list[str] = []
        self._hidden = 0
        self._open: tuple[str, list[str]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        given = {name: value or "" for name, value in attrs}
        if tag in ("style", "title", "script"):
            self._hidden += 1
        elif tag == "img":
            self.pictures.append(_Picture(given.get("src", "").strip(), bool(given.get("alt", "").strip())))
        elif tag == "a" and "href" in given:
            self._open = (given["href"].strip(), [])

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        if tag in ("style", "title", "script"):
            self._hidden = max(self._hidden - 1, 0)
        elif tag == "a" and self._open is not None:
            address, words = self._open
            self.links.append(_Link(address, "".join(words).strip()))
            self._open = None

    def handle_data(self, data: str) -> None:
        """Take words."""
        if not self._hidden:
            self.words += data.split()
            if self._open is not None:
                self._open[1].append(data)


def remarks(message: Message) -> Iterator[str]:
    """Each in a sentence."""
    rendered = message.rendered
    own = tuple(message.order.links.values())
    reader = _Reader()
    reader.feed(rendered.html)
    yield from _of_subject(rendered.subject)
    if (size := len(rendered.html.encode())) > CLIPPED_BYTES:
        yield f"the HTML part has {size:,} bytes; Gmail clips what is beyond {CLIPPED_BYTES:,}"
    if rendered.html and "<img" in rendered.html and "alt=" not in rendered.html:
        yield "its pictures have no `alt`, so that readers without pictures see nothing"
    elif any(not picture.has_words for picture in reader.pictures):
        yield "a picture has an empty `alt`: whoever does not see it reads nothing there"
    if reader.pictures and len(reader.words) < WORDS_MIN:
        yield "it is nearly pictures alone: filters punish that, and without pictures it says nothing"
    if rendered.html and not rendered.text.strip():
        yield "its text part is empty"
    if not message.order.transactional and not message.order.compiled.reads & {UNSUBSCRIBE, PREFERENCES}:
        yield "nothing in it leads to `unsubscribe_url` or `preferences_url`; programs without a button need a link"
    addresses = [picture.address for picture in reader.pictures if not picture.address.startswith(own)]
    yield from dict.fromkeys(
        [
            *(problem for link in reader.links if not link.address.startswith(own) for problem in _of_link(link)),
            *(problem for address in addresses for problem in _of_picture(address)),
        ]
    )


def _of_subject(subject: str) -> Iterator[str]:
    if len(subject) > SUBJECT_SHOWN:
        yield f"the subject has {len(subject)} characters; most programs show {SUBJECT_SHOWN} at most"
    letters = [letter for letter in subject if letter.isalpha()]
    if len(letters) >= LOUD_LETTERS and all(letter.isupper() for letter in letters):
        yield "the subject is in capitals alone, which filters punish"
    if subject.count("!") > 1:
        yield "the subject has several exclamation marks, which filters punish"


def _of_link(link: _Link) -> Iterator[str]:
    address, shown = link.address, f"the link {link.address[:80]!r}"
    if address in ("", "#"):
        yield f"the link on {link.words[:40]!r} leads nowhere"
        return
    if address.startswith("#"):
        return
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").casefold()
    except ValueError:
        yield f"{shown} is no address"
        return
    if parts.scheme not in _SCHEMES:
        yield f"{shown} is no whole address; begin it with https://"
        return
    if parts.scheme in ("http", "https"):
        if not host or any(character.isspace() for character in address):
            yield f"{shown} is no address"
            return
        yield from _of_host(shown, parts.scheme, host)
        named = _HOST.fullmatch(link.words)
        if named is not None and not _is_one_site(named[1].casefold(), host):
            yield f"a link says {link.words[:60]!r} and leads to {host}; filters take that for fraud"


def _of_host(shown: str, scheme: str, host: str) -> Iterator[str]:
    if _INSIDE.fullmatch(host):
        yield f"{shown} is of a machine that nobody else reaches"
    elif scheme == "http":
        yield f"{shown} is not encrypted; write https://"
    if host in SHORTENERS:
        yield f"{shown} hides where it leads; filters punish {host}"


def _of_picture(address: str) -> Iterator[str]:
    shown = f"the picture {address[:80]!r}"
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").casefold()
    except ValueError:
        host, parts = "", urlsplit("")
    if address.startswith(("cid:", "data:")):
        yield f"{shown[:30]}… is in the mail itself, and many programs do not show it"
    elif parts.scheme not in ("http", "https") or not host:
        yield f"{shown} has no whole address; begin it with https://"
    else:
        yield from _of_host(shown, parts.scheme, host)


def _is_one_site(named: str, host: str) -> bool:
    """Whether two hosts are the same, or one is inside of the other, as www.shop.example is in shop.example."""
    return f".{named}".endswith(f".{host}") or f".{host}".endswith(f".{named}")
