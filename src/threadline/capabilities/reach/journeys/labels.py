"""What the steps of a journey are called: what each does, and where two do the same, how one comes to it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

from threadline.capabilities.foundation.conditions.wording import condition_text, denied_text
from threadline.capabilities.reach.journeys.definition import Journey
from threadline.capabilities.reach.journeys.drawing import on_text, step_text
from threadline.capabilities.reach.journeys.program import named_steps
from threadline.capabilities.reach.journeys.steps import Step


class _Labeled(NamedTuple):
    id: str
    does: str
    above: tuple[str, ...]
    """What has decided for this way, from the first branch on."""


def step_labels(journey: Journey) -> dict[str, str]:
    """Id of each step -> words that no other step has, such as ``send offer (no purchase completed)``."""
    alike: dict[str, list[_Labeled]] = defaultdict(list)
    steps = [*_labeled(journey.steps, "", ())]
    for step in steps:
        alike[step.does].append(step)
    labels = {step.id: _among(step, alike[step.does]) for step in steps}
    counts = Counter[str]()
    for id, label in labels.items():
        counts[label] += 1
        if counts[label] > 1:
            labels[id] = f"{label} ({_ordinal(counts[label])})"
    return labels


def step_label(journeys: Sequence[Journey], name: str, version: int, step: str) -> str:
    """The label of a step of one version; its id where another version is in force."""
    journey = next((journey for journey in journeys if (journey.name, journey.version) == (name, version)), None)
    return step if journey is None else step_labels(journey).get(step, step)


def _among(step: _Labeled, alike: Sequence[_Labeled]) -> str:
    levels = zip(*(other.above for other in alike), strict=False)
    shared = sum(1 for _ in takewhile(lambda level: len(set(level)) == 1, levels))
    differs = step.above[shared:] if len(alike) > 1 else ()
    return f"{step.does} ({', '.join(differs)})" if differs else step.does


def _labeled(steps: tuple[Step, ...], prefix: str, above: tuple[str, ...]) -> Iterator[_Labeled]:
    for id, step, inner in named_steps(steps, prefix):
        if not step.steps:
            yield _Labeled(id, step_text(step), above)
        for decides, (begins, sequence) in zip(_ways(step), inner, strict=True):
            yield from _labeled(sequence, begins, (*above, decides) if decides else above)


def _ways(step: Step) -> list[str]:
    """What decides for each sequence in a step; empty where nothing does."""
    if step.wait is not None and step.wait.is_for_event:
        yes, no = on_text(step.wait), f"no {on_text(step.wait)}"
    elif step.condition is not None:
        yes, no = condition_text(step.condition.tree), denied_text(step.condition.tree)
    else:
        yes, no = "", "otherwise"
    return [*(condition_text(branch.conditions.tree) for branch in step.choice), "", yes, no]


def _ordinal(number: int) -> str:
    return f"{number}{'th' if number % 100 in (11, 12, 13) else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
