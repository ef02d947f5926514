"""What effects need before they are sent: their policy wants them still, and their preparation says with what."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from threadline.engine.delivery.access import EngineAccess
from threadline.engine.delivery.retry_schedule import RETRY_SECONDS_FIRST
from threadline.engine.folding.person import Person
from threadline.kernel.errors import Unavailable
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.preparation import Answer, DueEffect, Postponed, Prepared
from threadline.kernel.sender import EFFECT_RETRIED, EFFECT_WITHDRAWN, Outcome

T = TypeVar("T")
Withdrawn = Callable[[PendingEffect, PersonView], str]


def prepare(engine: EngineAccess, wave: Sequence[tuple[PendingEffect, Person]], now: int) -> Mapping[str, Answer]:
    """By the id of each effect what becomes of it right before it is sent, with its person as of now."""
    due = [DueEffect(engine.reader.as_of(person, now), pending) for pending, person in wave]
    answers: dict[str, Answer] = {}
    for ask in (_guarded, _withdrawn, _prepared):
        answers |= ask(engine, [effect for effect in due if effect.pending.id not in answers])
    return answers


def _guarded(engine: EngineAccess, due: Sequence[DueEffect]) -> dict[str, Answer]:
    """The answers of guards; nothing for what may go on."""
    answers: dict[str, Answer] = {}
    for policy, group in _groups(due, lambda pending: pending.policy).items():
        guard = engine.catalogue.guards.get(policy)
        if guard is not None:
            answers |= _refused(group, _asked(partial(guard.allow, engine), group))
    return answers


def _withdrawn(engine: EngineAccess, due: Sequence[DueEffect]) -> dict[str, Answer]:
    """The outcomes of effects that their policy does not want any more."""
    answers: dict[str, Answer] = {}
    for name, group in _groups(due, lambda pending: pending.policy).items():
        policy = engine.catalogue.policy(name)
        if policy is not None and policy.withdrawn is not None:
            answers |= _refused(group, _asked(partial(_reasons, policy.withdrawn), group))
    return answers


def _reasons(withdrawn: Withdrawn, due: Sequence[DueEffect]) -> list[str]:
    return [withdrawn(pending, view) for view, pending in due]


def _refused(due: Sequence[DueEffect], answers: Sequence[str | Postponed | Outcome]) -> dict[str, Answer]:
    return {
        effect.pending.id: _no_more(effect, answer) if isinstance(answer, str) else answer
        for effect, answer in zip(due, answers, strict=True)
        if answer
    }


def _prepared(engine: EngineAccess, due: Sequence[DueEffect]) -> dict[str, Answer]:
    """The answers of the preparations; what has none is sent with what its policy wished for."""
    answers: dict[str, Answer] = {effect.pending.id: Prepared(data=effect.pending.effect.data) for effect in due}
    for kind, group in _groups(due, lambda pending: pending.effect.kind).items():
        preparation = engine.catalogue.preparations.get(kind)
        if preparation is not None:
            made = _asked(partial(preparation.prepare, engine), group)
            answers |= {effect.pending.id: answer for effect, answer in zip(group, made, strict=True)}
    return answers


def _groups(due: Iterable[DueEffect], by: Callable[[PendingEffect], str]) -> dict[str, list[DueEffect]]:
    groups: dict[str, list[DueEffect]] = {}
    for effect in due:
        groups.setdefault(by(effect.pending), []).append(effect)
    return groups


def _asked(ask: Callable[[Sequence[DueEffect]], Sequence[T]], due: Sequence[DueEffect]) -> Sequence[T | Outcome]:
    """The answers for all; if that raises, each is asked for by itself, and one for which it raises is retried."""
    try:
        return ask(due)
    except Unavailable:
        raise  # the store is away: that is no attempt
    except Exception as error:  # noqa: BLE001 — an effect that cannot be prepared must not stop the others, nor be lost
        return [failed(error)] if len(due) == 1 else [answer for effect in due for answer in _asked(ask, [effect])]


def _no_more(effect: DueEffect, why: str) -> Outcome:
    return Outcome(type=EFFECT_WITHDRAWN, properties={"why": why, "data": effect.pending.effect.data})


def failed(error: Exception) -> Outcome:
    """Nothing was sent because of an error, and it is tried again."""
    failure = {"error": f"{type(error).__name__}: {error}"[:500]}
    return Outcome(type=EFFECT_RETRIED, properties=failure, retry_after_seconds=RETRY_SECONDS_FIRST)
