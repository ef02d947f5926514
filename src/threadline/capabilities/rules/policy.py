"""The policy ``rules``: what the rules in force decide about an event, in the commit that records it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from threadline.capabilities.rules.active_rules import Book, make_book
from threadline.capabilities.rules.deciding import POLICY, decide
from threadline.capabilities.rules.shadowing import shadow_wishes
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Declared, Policy, PolicyView, Shared, Wish


def rules_policy(declared: Book) -> Policy:
    """The policy for what the definitions declare and whatever each workspace adds to it by operations."""
    return Policy(
        name=POLICY,
        handles=None,
        react=_react,
        reads=tuple(read for rule in declared.rules.values() for read in rule.reads),
        shared=Shared(
            name=POLICY,
            make=partial(make_book, declared),
            heeds=Book.heeds,
            declared=tuple(Declared(r.id, r.version, r.canonical, r.place) for r in declared.rules.values()),
        ),
    )


def _react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
    book: Book = known.shared(POLICY)
    found = decide(book, recorded, known)
    wishes = [wish for each in found for wish in each.wishes(recorded)]
    if book.shadow is not None:
        # Asked after all that counts, and last, so that a shadow can take room from nothing.
        wishes += shadow_wishes(book, recorded, found, decide(book.shadow, recorded, known))
    return wishes
