"""What a case measured: one line of the results, with what was asked for."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Goal(NamedTuple):
    """What the number, or its ratio to the peer's, has to be."""

    of: Literal["ours", "ratio"]
    least: float | None = None
    most: float | None = None

    def __str__(self) -> str:
        sign, bound = ("≥", self.least) if self.least is not None else ("≤", self.most)
        return f"{sign} {bound:,g}" + (" ×" if self.of == "ratio" else "")


class Row(NamedTuple):
    """One measured line. ``theirs`` is a peer's number for the same work in the same run, in the same unit."""

    name: str
    ours: float
    unit: str
    theirs: float | None = None
    goal: Goal | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours to theirs; None without a peer."""
        return None if not self.theirs else self.ours / self.theirs

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None if there is none."""
        if self.goal is None:
            return None
        value = self.ours if self.goal.of == "ours" else self.ratio
        assert value is not None, f"{self.name} has a goal for a ratio and no peer"
        if self.goal.least is not None and value < self.goal.least:
            return False
        return self.goal.most is None or value <= self.goal.most


def quantile(values: list[float], fraction: float) -> float:
    """The value below which this fraction of the values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * fraction))]
