"""Who is in which arm of an experiment, as the events say: of a broadcast, of a journey, of one declared elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from threadline.capabilities.ask.analytics.parts import property_sql, step_of
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.reach.broadcasts import repository
from threadline.capabilities.reach.broadcasts.definition import ALL, Broadcast
from threadline.capabilities.reach.broadcasts.events import BROADCAST_ADDRESSED, DUE_AT, HOLDOUT
from threadline.capabilities.reach.journeys.declared import read_journeys
from threadline.capabilities.reach.journeys.definition import Journey
from threadline.capabilities.reach.journeys.events import JOURNEY_ENTERED, RUN_EVENTS
from threadline.capabilities.reach.journeys.steps import steps_of
from threadline.kernel.analytics import listed, literal
from threadline.kernel.errors import NotFound
from threadline.kernel.operation import Context

TREATED = "journey"
"""The arm of those who go through a journey, beside its holdout."""


class Asked(Protocol):
    """The parameters that say which experiment."""

    broadcast: str
    journey: str
    step: str
    assignment: str
    arm: str


class Assignment(NamedTuple):
    """An event that assigns people, in SQL."""

    sql: str
    """Whether an event is one."""
    arm: str
    """The name of its arm; empty or NULL: it assigns to none."""
    weights: Mapping[str, float] = {}
    """As declared; empty where nothing is."""
    since: str = "epoch_us(occurred_at)"
    """From when on what somebody does counts, microseconds."""


def assignment_of(context: Context, asked: Asked) -> Assignment:
    """The assignment of the experiment that is asked for. Raises `NotFound`, `InvalidValue`."""
    if asked.broadcast:
        created = repository.get(context.engine.store, context.workspace, asked.broadcast)
        own = f"type = '{BROADCAST_ADDRESSED}' AND {_is('broadcast', asked.broadcast)}"
        # The rest, who get the arm that did best, come later: they were drawn into none.
        first = f"(SELECT min(occurred_at) FROM events WHERE {own})"  # noqa: S608 — quoted above
        weights = _of_broadcast(created.broadcast)
        due = f"epoch_us(try_cast({_text(DUE_AT)} AS TIMESTAMP))"
        since = f"greatest(epoch_us(occurred_at), coalesce({due}, 0))"
        return Assignment(f"{own} AND occurred_at = {first}", _text("arm"), weights, since)
    if not asked.journey:
        step = step_of(asked.assignment, "assignment", context.engine.catalogue.event_types)
        return Assignment(step.sql, property_sql(asked.arm, "arm"))
    journeys = {journey.name: journey for journey in _journeys(context)}
    if asked.journey not in journeys:
        raise NotFound(f"there is no journey {asked.journey!r}", hint="`journeys_list` lists them")
    journey, own, arm = journeys[asked.journey], _is("journey", asked.journey), f"'{TREATED}'"
    if not asked.step:
        sql, weights = f"type = '{JOURNEY_ENTERED}' AND {own}", {TREATED: 1 - journey.holdout}
    else:
        is_one = f"lambda mail: mail->>'step' = {literal(asked.step)}"
        mail = f"list_filter(json_extract(properties, '/mails')::JSON[], {is_one})"
        # A run's last event has the mails of its last advance.
        sql = f"type IN {listed(RUN_EVENTS)} AND {own} AND len({mail}) > 0"
        arm, weights = f"coalesce({mail}[1]->>'arm', {mail}[1]->>'template')", _of_step(journey, asked.step)
    in_holdout = "json_extract_string(properties, '/holdout') = 'true'"
    holdout = {HOLDOUT: journey.holdout} if journey.holdout else {}
    return Assignment(sql, f"CASE WHEN {in_holdout} THEN '{HOLDOUT}' ELSE {arm} END", weights | holdout)


def _of_broadcast(broadcast: Broadcast) -> dict[str, float]:
    weights = {arm.name: arm.weight for arm in broadcast.arms} or {ALL: 1}
    share = (1 - broadcast.holdout) * (broadcast.winner.share if broadcast.winner is not None else 1)
    shares = {name: share * weight / sum(weights.values()) for name, weight in weights.items()}
    return shares | ({HOLDOUT: broadcast.holdout} if broadcast.holdout else {})


def _of_step(journey: Journey, name: str) -> dict[str, float]:
    sends = (step.send for step in steps_of(journey.steps) if step.send is not None and step.id == name)
    arms: Any = next((send.arms for send in sends), ())
    whole = sum(arm.weight for arm in arms)
    return {arm.name or arm.template: (1 - journey.holdout) * arm.weight / whole for arm in arms}


def _journeys(context: Context) -> list[Journey]:
    definitions: Any = context.engine.catalogue.definitions
    return list(read_journeys(definitions) or ()) if isinstance(definitions, Definitions) else []


def _is(name: str, value: str) -> str:
    return f"{_text(name)} = {literal(value)}"


def _text(name: str) -> str:
    return f"json_extract_string(properties, {literal('/' + name)})"
