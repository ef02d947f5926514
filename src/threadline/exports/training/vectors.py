"""The vectors of a few people who were ever joined, made of their events alone: what a worker of any engine calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from threadline.capabilities.profile.features.training import Label, ReadVector, Row, training_rows
from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.reading.detached import DetachedPeople
from threadline.kernel.event import Recorded
from threadline.kernel.identity import MERGED, SPLIT

KnownBy = Literal["then", "now"]


def vectors_of(
    catalogue: Catalogue,
    workspace: str,
    owners: Mapping[str, str],
    events: Iterable[Recorded],
    labels: Sequence[Label],
    columns: Sequence[str],
    known: KnownBy = "then",
) -> list[Row]:
    """A row for each label, as the operation ``features_training_set`` answers it.

    ``owners`` (thread -> whose it is now) and ``events`` are those of all people who were ever joined with one of those
    whom the labels name: `Components` says who they are. It is pure, and reads no store.
    """
    people = DetachedPeople(catalogue, workspace, owners, events)

    def whom(ref: str) -> ReadVector:
        if known == "now":
            person = people.person(ref)
            return lambda at: (person.id, people.view("features", person, at))
        history = people.identity_history(ref)

        def then(at: int) -> tuple[str, Any]:
            was = history.at(at)
            return was.id, people.view("features", was, at, at)

        return then

    return training_rows(labels, columns, whom)


CHANGES = (MERGED, SPLIT)
"""The types of the events from which `Components` are made."""


class Components:
    """Which people were ever joined with one another, transitively."""

    def __init__(self) -> None:
        self._above: dict[str, str] = {}

    def add(self, properties: Mapping[str, Any], owners: Mapping[str, str]) -> None:
        """Take in a join or a split; ``owners``: thread -> whose it is now."""
        ids = [str(properties[name]) for name in ("survivor", "merged", "person", "split") if name in properties]
        people = [self.of(owners[id]) for id in ids if id in owners]
        for person in people[1:]:
            self._above[self.of(person)] = self.of(people[0])

    def of(self, person: str) -> str:
        """The component of a person: the id of one of its people."""
        root = person
        while (above := self._above.get(root, root)) != root:
            root = above
        while (above := self._above.get(person, root)) != root:
            self._above[person], person = root, above
        return root

    def several(self) -> dict[str, str]:
        """Person -> component, of the people who are not alone in theirs."""
        components = {person: self.of(person) for person in self._above}
        return components | {root: root for root in components.values()}
