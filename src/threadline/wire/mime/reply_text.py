"""The visible part of a reply: what its author wrote, without what they quoted and their signature.

Line by line and in linear time; regular expressions over whole mails take minutes on hostile ones.
"""

from __future__ import annotations

import re

LINES_MAX = 4_000
LINE_LENGTH_MAX = 2_000
_HEADER_LINES_MAX = 4
"""Lines that mail programs fold the line "On ... wrote:" into."""

_WROTE = re.compile(
    r"(?i)^[>\s*]*(?:on|am|le|el|il|em|op|den|d\.|dne|dnia|w dniu|в|il giorno|\w{2},|\d{1,4}[./-]\d|"
    r"[^\W\d]{3,10}[,.]? \d|"
    r"\d{4}年|.{1,80}<[^<>@\s]{1,64}@[^<>\s]{1,255}>).{0,400}"
    r"(?:wrote|schrieb|a écrit|écrivait|escribió|ha scritto|escreveu|schreef|skrev|napsala?|napisała?|kirjoitti|"
    r"пишет|написала?|写道|寫道|のメール|작성).{0,60}[::]\s*$"
)
_STARTS = re.compile(
    r"(?i)^[>\s*]*(?:on|am|le|el|il|em|op|den|dne|w dniu)\b.{0,200}(?:\d|@)|^[^<>]{1,80}<[^<>@\s]{1,64}@[^<>\s]{1,255}>"
)
_ORIGINAL = re.compile(
    r"(?i)^\s*>?\s*-{2,}\s*(?:original|ursprüngliche|forwarded|weitergeleitete|mensaje|message|messaggio|mensagem|"
    r"oorspronkelijk|ursprungligt|исходное|reply above)[^-]{0,40}-{2,}|^_{20,}\s*$"
)
_FIELD = re.compile(
    r"(?i)^[\s>*]*(?:from|sent|to|subject|date|cc|von|gesendet|an|betreff|datum|de|envoyé|à|objet|enviado(?: el)?|para|"
    r"asunto|da|inviato|oggetto|data|a|van|verzonden|aan|onderwerp|från|skickat|till|ämne|от|кому|тема|"
    r"дата)\*?\s?:\*? ?\S"
)
_EMPTY = re.compile(r"^[\s_-]*$")
_SIGNATURE = re.compile(
    r"(?i)^(?:--|—|__)\s*$|^\s*(?:sent|get outlook|gesendet|envoyé|enviado|inviato|verzonden|verstuurd|skickat|"
    r"von meinem)"
    r"\b.{0,20}\b(?:from|via|von|vom|de|desde|da|met|vanaf|från|for|mit|mon|meinem|minha)\b[^,]{0,60}$"
)


def visible(text: str) -> str:
    """What was written; empty if everything is quoted."""
    lines = [line[:LINE_LENGTH_MAX].rstrip() for line in text.splitlines()[:LINES_MAX]]
    # Twice: a signature may stand below the quote, or between what was written and the quote.
    lines = _without_signature(lines)
    lines = lines[: _cut(lines)]
    while lines and (_EMPTY.match(lines[-1]) or lines[-1].lstrip().startswith(">") or _introduces(lines)):
        lines.pop()
    return "\n".join(_without_signature(lines)).strip()


def _cut(lines: list[str]) -> int:
    """The line from which on there is only what was quoted."""
    last_own = max(
        (n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith(">")), default=-1
    )
    for number, line in enumerate(lines):
        if _ORIGINAL.search(line):
            return number
        if _FIELD.match(line) and sum(bool(_FIELD.match(following)) for following in lines[number : number + 5]) >= 3:
            return number
        size = _wrote(lines, number)
        # What stands below a quote was written too: who answers between the lines writes below.
        if size and (number + size > last_own or not _quoted(lines, number + size)):
            return number
    return len(lines)


def _quoted(lines: list[str], start: int) -> bool:
    """Whether the next line with anything in it is quoted."""
    following = next((line for line in lines[start : start + 5] if line.strip()), "")
    return following.lstrip().startswith(">")


def _wrote(lines: list[str], start: int) -> int:
    """Of how many lines "On ... wrote:" is that begins here; 0 if none does."""
    if not lines[start].strip() or not (_STARTS.match(lines[start][:300]) or _WROTE.match(lines[start][:600])):
        return 0
    joined = ""
    for size, line in enumerate(lines[start : start + _HEADER_LINES_MAX], 1):
        if size > 1 and not line.strip():
            return 0
        joined = f"{joined} {line}".strip()[:600]
        if _WROTE.match(joined):
            return size
    return 0


def _introduces(lines: list[str]) -> bool:
    """Whether the last lines announce a quote that stood below them."""
    return any(
        _wrote(lines, len(lines) - size) == size for size in range(1, _HEADER_LINES_MAX + 1) if size <= len(lines)
    )


def _without_signature(lines: list[str]) -> list[str]:
    for number, line in enumerate(lines):
        if number and _SIGNATURE.match(line) and not any(later.lstrip().startswith(">") for later in lines[number:]):
            return lines[:number]
    return lines
