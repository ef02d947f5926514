"""A mail as programs show it that are light, and as those do that are dark, whatever the browser is that shows it."""

from __future__ import annotations

import re

_DARK = re.compile(r"@media\s*\(\s*prefers-color-scheme\s*:\s*dark\s*\)", re.IGNORECASE)
_ENDED = re.compile(r"</head\s*>", re.IGNORECASE)
_INVERTED = (
    "<style>html { filter: invert(.92) hue-rotate(180deg); background: #fff }"
    " img { filter: invert(1) hue-rotate(180deg) }</style>"
)
"""What programs do with the colours of a mail that brings none for the dark: light becomes dark, pictures stay."""


def lightened(html: str) -> str:
    """The mail without the colours that it brings for the dark."""
    return _DARK.sub("@media not all", html)


def darkened(html: str) -> str:
    """The mail with the colours that it brings for the dark; one that brings none as programs make it dark."""
    if _DARK.search(html):
        return _DARK.sub("@media all", html)
    head = _ENDED.search(html)
    return f"{html[: head.start()]}{_INVERTED}{html[head.start() :]}" if head is not None else _INVERTED + html
