"""The policy ``rules``: what the rules in force decide about an event, in the commit that records it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from threadline.capabilities.decide.rules.actions import NOTIFICATION, WEBHOOK
from threadline.capabilities.decide.rules.active_rules import ActiveRules, make_active_rules
from threadline.capabilities.decide.rules.deciding import POLICY, decide
from threadline.capabilities.decide.rules.shadowing import shadow_wishes
from threadline.capabilities.reach.mail.definition import KIND as MAIL
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Declared, Policy, PolicyView, Shared, Wish


def rules_policy(declared: ActiveRules) -> Policy:
    """The policy for what the definitions declare and whatever each workspace adds to it by operations."""
    return Policy(
        name=POLICY,
        handles=None,
        react=_react,
        sends=frozenset({MAIL, NOTIFICATION, WEBHOOK}),
        reads=tuple(read for rule in declared.rules.values() for read in rule.reads),
        shared=Shared(
            name=POLICY,
            make=partial(make_active_rules, declared),
            handles=ActiveRules.handles,
            declared=tuple(Declared(r.id, r.version, r.canonical, r.place) for r in declared.rules.values()),
        ),
        existing=lambda active: any(rule_set.takes_existing for rule_set in active.sets.values()),
    )


def _react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    active: ActiveRules = known.shared(POLICY)
    decisions = decide(active, recorded, known)
    wishes = [wish for decided in decisions for wish in decided.wishes(recorded)]
    if active.shadow is not None:
        # Asked after all that counts, and last, so that a shadow can take room from nothing.
        wishes += shadow_wishes(active, recorded, decisions, decide(active.shadow, recorded, known))
    return wishes
