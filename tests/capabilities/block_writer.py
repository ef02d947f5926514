"""Blocks of mails, written at random as somebody would write them, and as nobody should."""

from __future__ import annotations

from random import Random
from typing import Any

WORDS = (
    *("Hello", "Grüße", "ציון", "20 %", "“quoted”", "👋", "<b>", "a & b", "it's"),
    *("* star", "**", "[open", "x_y", "{one}"),
)
VALUES = {"name": "<Ada> & \"Bob\" 'C'", "link": 'https://shop.example/?a=1&b="2"', "many": ["one", "<two>"]}
"""Values that blocks name."""

MARKED = (
    *("WORD", "**WORD**", "*WORD*", "[WORD](https://shop.example/?a=1&b=2)", "**WORD [and*](x)", "*WORD** [x](y)*"),
    *("WORD{{ name }}", "{{ name | default('a\nb') }} WORD", "[WORD]({{ link }})", "{% if name %}WORD{% endif %}"),
)


class BlockWriter:
    """Writes blocks as they stand in a definition, and notes the words that a reader has to see."""

    def __init__(self, random: Random, words: tuple[str, ...] = WORDS) -> None:
        self.random = random
        self.words = words
        self.seen: list[str] = []

    def word(self) -> str:
        """A word, with a number that no other has."""
        self.seen.append(f"w{len(self.seen)}w")
        return f"{self.random.choice(self.words)} {self.seen[-1]}"

    def marked(self) -> str:
        """Words, marked up or not, with values or not."""
        return self.random.choice(MARKED).replace("WORD", self.word())

    def text(self) -> str:
        """Paragraphs and lists."""
        parts = []
        for _ in range(self.random.randint(1, 3)):
            lines = [self.marked() for _ in range(self.random.randint(1, 3))]
            dash = self.random.choice(("", "", "- "))
            parts.append("\n".join(f"{dash}{line}" for line in lines))
        return "\n\n".join(parts)

    def piece(self) -> dict[str, Any]:
        """A block that may stand in a column."""
        kind = self.random.choice(("heading", "text", "text", "button", "picture", "divider"))
        if kind == "divider":
            return {kind: self.random.choice(("line", "space"))}
        inner: Any
        if kind == "heading":
            inner = self.word()
        elif kind == "text":
            inner = self.text()
        elif kind == "button":
            inner = {"text": self.word(), "link": self.random.choice(("https://shop.example/b?x=1&y=2", "{{ link }}"))}
            inner |= self.random.choice(({}, {"color": "#aa0011"}))
        else:
            inner = {"source": "https://shop.example/a.png", "alt": self.word()}
            inner |= self.random.choice(({}, {"width": 120}, {"link": "{{ link }}"}))
        return {kind: inner, **self.random.choice(({}, {}, {"align": "center"}, {"align": "right"}))}

    def blocks(self) -> list[dict[str, Any]]:
        """A mail."""
        made: list[dict[str, Any]] = []
        for _ in range(self.random.randint(1, 5)):
            if self.random.random() < 0.25:
                count = self.random.randint(1, 4)
                columns = [[self.piece() for _ in range(self.random.randint(1, 3))] for _ in range(count)]
                made.append({"columns": columns})
            else:
                made.append(self.piece())
        if self.random.random() < 0.6:
            made.append({"footer": {"text": self.text(), **self.random.choice(({}, {"unsubscribe": ""}))}})
        return made
