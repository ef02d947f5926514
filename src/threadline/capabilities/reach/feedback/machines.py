"""Which opens and clicks are those of machines: they are recorded like others, and not counted as people's.

The list of crawlers, ``crawlers.txt``, is that of monperrus/crawler-user-agents 1.60.0 (MIT, `crawlers.LICENSE`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

from threadline.kernel.time import SECOND

BURST = 10 * SECOND
BURST_LINKS = 3
"""Different links of one mail within `BURST`: people don't follow so many so fast, scanners follow all."""
HONEYPOT_WITHIN = 60 * SECOND
"""What came so near to the link that people don't see came from the same scanner."""
AGENT_LENGTH_MAX = 500

_IMAGE_PROXIES = re.compile(r"GoogleImageProxy|YahooMailProxy", re.IGNORECASE)
"""They load pictures when a person looks at the mail."""
_PREVIEWS = re.compile(r"Edge/12\.246 Mozilla/5\.0\s*$")
"""Gmail's agent for previews, which loads the pictures of a mail that nobody looks at. No Edge ended so."""
_SCANNERS = re.compile(
    r"(?i)barracuda|proofpoint|mimecast|symantec|messagelabs|forcepoint|ironport|trendmicro|sophos|fireeye|cloudmark|"
    r"safelinks|urldefense|headlesschrome|phantomjs|python-requests|okhttp|java/|go-http-client|curl/|wget/"
)
_PREFETCH = ("purpose", "x-purpose", "sec-purpose", "x-moz")


class Click(NamedTuple):
    """A click on a link of one mail."""

    at: int
    link: str
    """Empty: the link that people don't see."""


def machine(method: str, headers: Mapping[str, str], *, opened: bool) -> str:
    """Why a request for a link or a picture is that of a machine, by what it says itself; empty: it need not be one."""
    if method == "HEAD":
        return "head"
    if any(re.search("prefetch|preview|prerender", headers.get(name, "").lower()) for name in _PREFETCH):
        return "prefetch"
    return machine_agent(headers.get("user-agent", "")[:AGENT_LENGTH_MAX], opened)


@lru_cache(maxsize=4_096)
def machine_agent(agent: str, opened: bool) -> str:
    """The same by the user agent alone."""
    if not agent.strip():
        return "no_agent"
    if opened and _IMAGE_PROXIES.search(agent):
        return ""
    if agent.strip() == "Mozilla/5.0":
        return "apple_privacy" if opened else "crawler"
    if _PREVIEWS.search(agent):
        return "prefetch"
    return "crawler" if _SCANNERS.search(agent) or _crawlers().search(agent) else ""


def is_image_proxy(agent: str) -> bool:
    """Whether a mail service loads the picture for a person who looks at it."""
    return _IMAGE_PROXIES.search(agent) is not None


def scanned(clicks: Iterable[Click]) -> dict[Click, str]:
    """Those of one mail's clicks that a scanner has made, and why: together they say what no single one does."""
    ordered = sorted(clicks)
    traps = [click.at for click in ordered if not click.link]
    reasons: dict[Click, str] = {}
    start = 0
    for end, last in enumerate(ordered):
        while last.at - ordered[start].at > BURST:
            start += 1
        within = ordered[start : end + 1]
        if len({click.link for click in within}) >= BURST_LINKS:
            reasons.update(dict.fromkeys(within, "scanner"))
        if any(abs(last.at - trap) <= HONEYPOT_WITHIN for trap in traps):
            reasons[last] = "honeypot"
    return reasons


@cache
def _crawlers() -> re.Pattern[str]:
    return re.compile(
        "|".join(files(__package__).joinpath("crawlers.txt").read_text(encoding="utf-8").split("\n")[:-1])
    )
