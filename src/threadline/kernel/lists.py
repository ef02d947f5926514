"""Lists as text: names with commas between them, as settings and the parameters of a query give them."""

from __future__ import annotations


def comma_separated(text: str) -> list[str]:
    """The parts between the commas, without blanks around them; parts that are blank are left out."""
    return [part for part in (part.strip() for part in text.split(",")) if part]
