"""The projection ``features``: all declared features of one person, folded exactly, read at any instant."""

from __future__ import annotations

from functools import partial
from typing import Any

from threadline.capabilities.profile.features.codegen import fuser
from threadline.capabilities.profile.features.definition import ANY, Feature, FeatureSet, content_hash
from threadline.capabilities.profile.features.plan import LAYOUT, Plan, make_plan
from threadline.capabilities.profile.features.view import Reader
from threadline.kernel.event import Recorded
from threadline.kernel.projection import Depends, Faster, Look, Projection


def projection(features: FeatureSet) -> Projection:
    """The projection of a feature set. Its fingerprint changes only with what the state has to hold."""
    plan = make_plan(features)
    reader = Reader(features, plan)
    return Projection(
        name="features",
        version=LAYOUT,
        handles=plan.handles,
        empty=dict,
        fold=partial(fold, plan),
        view=reader.view,
        depends=Depends(
            edges=reader.edges, due=reader.due, feeds=partial(_feeds, features), content=partial(_content, features)
        ),
        in_parts=True,
        fingerprint=plan.fingerprint,
        carries=plan.shapes,
        faster=Faster(fold=fuser(plan), merge=plan.merge, view=lambda names: _look(Reader(features, plan, names))),
        timeless=_timeless,
    )


def _look(reader: Reader) -> Look:
    return Look(reader.view, reader.edges)


def _feeds(features: FeatureSet, path: tuple[str, ...]) -> frozenset[str] | None:
    """The types that feed the feature at a path, and what it is built on; None where that is any type."""
    feature = features.by_name.get(path[0])
    if feature is None or feature.hidden:
        return frozenset()
    sources = [needed.source for needed in _with_needs(features, feature) if needed.source is not None]
    types = {feed.type for source in sources for feed in source.feeds}
    return None if ANY in types else frozenset(types)


def _with_needs(features: FeatureSet, feature: Feature) -> list[Feature]:
    """A feature and all that it is built on."""
    needed = [feature]
    for part in needed:
        needed += [features.by_name[name] for name in part.needs]
    return needed


def _content(features: FeatureSet, path: tuple[str, ...]) -> str:
    """A hash of what decides the feature at a path; of all of them where the path names none."""
    feature = features.by_name.get(path[0]) if path else None
    if feature is None:
        return features.fingerprint
    declared = [{**needed.content, "description": ""} for needed in _with_needs(features, feature)]
    return content_hash([declared, features.currencies, features.timezone, features.ignored_after])


def fold(plan: Plan, state: dict[str, Any], recorded: Recorded) -> dict[str, Any] | None:
    """The plain form of the fold, slot by slot: what `fuser` writes out for one type must equal it."""
    touched = None
    for slot in plan.slots:
        entry = slot.entry(recorded)
        if entry is None:
            if slot.count_unread(state, recorded):
                touched = state
            continue
        at = recorded.event.occurred_at
        slot_state = state.get(slot.name)
        if slot_state is None:
            state[slot.name] = slot.open(recorded.recorded_at, at, entry)
        else:
            slot.add(slot_state, recorded.recorded_at, at, entry)
        touched = state
    return touched


def _timeless(state: dict[str, Any]) -> dict[str, Any]:
    """A state without the head of each slot: when its newest event was recorded depends on arrival by intent."""
    return {name: slot_state[1:] for name, slot_state in state.items()}
