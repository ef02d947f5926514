"""Rewrites the links of a mail and adds the pixel by which it is known that the mail was shown."""

from __future__ import annotations

import html as markup
import re
from collections.abc import Callable

_TAG = re.compile(r"""(?i)<(?:a|area)\b(?>(?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_HREF = re.compile(r"""(?i)(?<=\s)href\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>"']+))""")
_UNTRACKED = re.compile(r"""(?i)(?<=\s)clicktracking\s*=\s*["']?off\b""")
_WEB = re.compile(r"(?i)https?://")
_END = re.compile(r"(?i)</body\s*>")
_TEXT_LINK = re.compile(r"""(?i)\bhttps?://[^\s<>"']+""")
_AFTER_LINK = ".,;:!?)]}'*_"
"""What ends a sentence rather than a link."""

Click = Callable[[str], str]
"""The link that stands in the mail for a web address; empty: the address itself does."""


def tracked_html(html: str, click: Click, pixel: str = "", honeypot: str = "") -> str:
    """HTML with its links to the web replaced, and what a person does not see at its end; all else stays byte for byte.

    A tag with ``clicktracking="off"`` keeps its link. ``pixel`` is the address of a picture, ``honeypot`` of a link
    that only programs find.
    """
    tracked = _TAG.sub(lambda tag: _tag(tag[0], click), html)
    hidden = ""
    if honeypot:
        hidden += f'<a href="{markup.escape(honeypot)}" style="display:none" tabindex="-1" aria-hidden="true"></a>'
    if pixel:
        hidden += f'<img src="{markup.escape(pixel)}" width="1" height="1" alt="" style="display:block;border:0">'
    if not hidden:
        return tracked
    ends = [match.start() for match in _END.finditer(tracked)]
    end = ends[-1] if ends else len(tracked)
    return f"{tracked[:end]}{hidden}{tracked[end:]}"


def tracked_text(text: str, click: Click) -> str:
    """Plain text with its web addresses replaced."""

    def replaced(match: re.Match[str]) -> str:
        link = match[0].rstrip(_AFTER_LINK)
        # A bracket within the address belongs to it.
        if match[0][len(link) :].startswith(")") and link.count("(") > link.count(")"):
            link += ")"
        return (click(link) or link) + match[0][len(link) :]

    return _TEXT_LINK.sub(replaced, text)


def _tag(tag: str, click: Click) -> str:
    if _UNTRACKED.search(tag):
        return tag

    def replaced(match: re.Match[str]) -> str:
        link = markup.unescape(next(group for group in match.groups() if group is not None)).strip()
        tracked = click(link) if _WEB.match(link) else ""
        return f'href="{markup.escape(tracked)}"' if tracked else match[0]

    return _HREF.sub(replaced, tag, count=1)
