"""What a case measured: one line of the results, with what was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from bench.trees import COMMIT, OURS

NO_WORSE = 1.1
"""What the same code beside itself reaches when percentiles are compared: more than this is worse."""


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
    """What must be reached."""
    note: str = ""
    aim: Goal | None = None
    """What is aimed at, beyond the goal."""

    @property
    def ratio(self) -> float | None:
        """Ours to theirs; None without a peer."""
        return None if not self.theirs else self.ours / self.theirs

    @property
    def verdict(self) -> Literal["", "met", "must met", "missed", "no peer"]:
        """Whether goal and aim are reached: ``met`` is both, or all that there is."""
        if self.goal is None:
            return ""
        if self.ratio is None and "ratio" in {goal.of for goal in (self.goal, self.aim) if goal}:
            return "no peer"
        if not self._reaches(self.goal):
            return "missed"
        return "met" if self.aim is None or self._reaches(self.aim) else "must met"

    def _reaches(self, goal: Goal) -> bool:
        value = self.ours if goal.of == "ours" else self.ratio
        assert value is not None
        return (goal.least is None or value >= goal.least) and (goal.most is None or value <= goal.most)


def compared(
    name: str,
    by_tree: Mapping[str, float],
    unit: str,
    goal: Goal | None = None,
    aim: Goal | None = None,
    note: str = "",
) -> Row:
    """A row of numbers by name of the tree: ours beside the earlier commit's."""
    theirs = by_tree.get(COMMIT)
    if theirs is None:
        note = "; ".join(filter(None, [note, f"{COMMIT} is not in the history of this clone"]))
    return Row(name, by_tree[OURS.name], unit, theirs, goal, note, aim)


def quantile(values: list[float], fraction: float) -> float:
    """The value below which this fraction of the values lies (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * fraction))]


def quantiles(by_tree: Mapping[str, list[float]], fraction: float) -> dict[str, float]:
    """The same for each tree."""
    return {tree: quantile(values, fraction) for tree, values in by_tree.items()}
