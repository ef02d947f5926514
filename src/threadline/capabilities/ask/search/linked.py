"""What is linked to an event: what it names, what names it, and so on from there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from threadline.capabilities.ask.search.documents import ids_named
from threadline.kernel.event import Recorded
from threadline.kernel.operation import Context
from threadline.kernel.search import IndexProgress, Query

DISTANCE_MAX = 8
_LINKS_ASKED = 200
"""Ids that one query of the index names."""

Relation = Literal["itself", "cause", "consequence", "same object"]


class Linked(NamedTuple):
    """An event and how it was come upon."""

    recorded: Recorded
    relation: Relation
    via: str
    """The id that links it to an event nearer to the beginning."""
    distance: int


class Network:
    """Events linked to some others, nearest first, at most ``limit``."""

    def __init__(self, context: Context, limit: int) -> None:
        self._context = context
        self._limit = limit
        self.links: dict[str, Linked] = {}
        self.is_cut = False
        """Whether there is more than the limit, or further away than `DISTANCE_MAX`."""
        self.progress = IndexProgress(0, False)

    def begin(self, events: Iterable[Recorded], relation: Relation, via: str) -> list[str]:
        """Take in events at distance 0; answers the ids that lead on from there."""
        return [id for event in events for id in self._add(Linked(event, relation, via, 0))]

    def follow(self, ids: Iterable[str]) -> None:
        """Take in what is linked to these ids, and what is linked to that."""
        frontier, followed = list(dict.fromkeys(ids)), set[str]()
        for distance in range(1, DISTANCE_MAX + 1):
            followed.update(frontier)
            following: list[str] = []
            for start in range(0, len(frontier), _LINKS_ASKED):
                some = frontier[start : start + _LINKS_ASKED]
                following += self._step(some, distance)
            frontier = [id for id in dict.fromkeys(following) if id not in followed]
            if not frontier or self.is_cut:
                return
        self.is_cut = True

    def naming(self, ids: Iterable[str]) -> list[Recorded]:
        """The events that name one of these ids, the newest first."""
        return self.matching(Query(self._context.workspace, links=tuple(ids), limit=self._limit + 1))

    def matching(self, query: Query) -> list[Recorded]:
        """The events that a query of the index finds."""
        matches = self._context.engine.search.search(query)
        self.progress = matches.progress
        events = self._context.engine.log.events(self._context.workspace, matches.ids)
        return [events[id] for id in matches.ids if id in events]

    def _step(self, ids: list[str], distance: int) -> list[str]:
        following: list[str] = []
        for id, event in self._context.engine.log.events(self._context.workspace, ids).items():
            following += self._add(Linked(event, "cause", id, distance))
        asked = set(ids)
        for event in self.naming(ids):
            via = next((name for name in ids_named(event) if name in asked), "")
            if via:
                following += self._add(Linked(event, "consequence", via, distance))
        return following

    def _add(self, linked: Linked) -> list[str]:
        recorded = linked.recorded
        if recorded.id in self.links:
            return []
        if len(self.links) >= self._limit:
            self.is_cut = True
            return []
        self.links[recorded.id] = linked
        return [recorded.id, *ids_named(recorded)]
