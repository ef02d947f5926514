"""The journal: which pages a call is about to commit, in one order for the whole table; the feed follows from it.

A position is an instant with the writer's mark. Before a call commits, its entry names the pages that it will write,
and a page is there exactly if its batch was committed. So the feed is the journal, entry by entry, without the pages
that are not there. What remains is to know when an entry can still change, and the register of writers says that:

- A writer registers before its first entry, with the position from which its entries start; then it takes positions
  beyond the last entry that it finds. It raises its position as its calls end, and leaves when it is idle.
- A reader reads the register, then the journal below all registered positions, then the register again. If nobody
  registered meanwhile, no entry can be added any more before the last one that it read.
- Between its entry and its transaction a writer looks whether it is still registered. One that has been silent for
  too long is expelled: first it is marked, then its open entries are closed by a mark in place of each page that is
  not there, then it is struck off. A transaction of it that is still under way meets that mark and fails.

No step depends on how clocks agree; clocks decide only how soon a silent writer is expelled.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from threadline.kernel.errors import Unavailable
from threadline.kernel.time import Clock
from threadline.stores.dynamodb.client import Body, Client, Gone, Refused
from threadline.stores.dynamodb.layout import (
    DEAD,
    JOURNAL_SHARDS,
    ONLY,
    PK,
    SK,
    Attributes,
    PageKey,
    journal_key,
    journal_pk,
    journal_pks,
    pack_journal,
    page_key,
    unpack_journal,
)
from threadline.stores.dynamodb.reading import get_many, query_pages

BEAT_SECONDS = 0.5
IDLE_BEATS = 2
REGISTER: Attributes = {PK: {"S": "w"}, SK: {"S": ONLY}}
GENERATION = "g"
_WRITER = "w_"
_EXPELLED = "x"
END = "g"
"""Greater than every position, which are hex digits."""


class Register(NamedTuple):
    """The register of writers, as read at one instant."""

    generation: int
    """How many have ever registered."""
    words: dict[str, str]
    """Writer -> ``floor.beat``: no entry of it below the floor is open, and how often it has said so. An ``x`` stands
    before it once it is being expelled."""

    @property
    def horizon(self) -> str:
        """Below this position every entry is settled."""
        return min(map(_floor, self.words.values()), default=END)


def _floor(mark_text: str) -> str:
    return mark_text.lstrip(_EXPELLED).partition(".")[0]


class Journal:
    """This process's part in the journal of one table. Thread-safe."""

    def __init__(self, client: Client, clock: Clock, *, expiry_seconds: float = 10.0) -> None:
        self._client = client
        self._clock = clock
        self._expiry_seconds = expiry_seconds
        self._lock = threading.Lock()
        self._register_lock = threading.Lock()
        self._last = 0
        self._mark = secrets.token_hex(4)
        """Of the present registration; a new one has a new mark, so that what was begun under an old one is known."""
        self._registered = False
        self._open: set[str] = set()
        self._doubtful: set[str] = set()
        """Positions whose calls ended without an answer; they are settled before the floor goes past them."""
        self._beats = self._idle_beats = 0
        self._beater: threading.Thread | None = None
        self._closing = threading.Event()
        self._silent: dict[str, tuple[str, float]] = {}
        """Writer -> its last ``floor.beat`` and since when that has not changed, as seen here."""
        self._silent_lock = threading.Lock()

    # --- positions --------------------------------------------------------------------------

    def observe(self, position: str) -> None:
        """Take later positions from now on: what follows a read comes after what was read."""
        at = int(position[:16], 16)
        if at > self._last:
            with self._lock:
                self._last = max(self._last, at)

    def tick(self) -> str:
        """A position after every other that is known here."""
        with self._lock:
            return self._tick()

    def _tick(self) -> str:
        self._last = max(self._clock(), self._last + 1)
        return f"{self._last:016x}{self._mark}"

    # --- writing ----------------------------------------------------------------------------

    def begin(self) -> str:
        """A position for an entry; the writer is registered when this returns."""
        while True:
            with self._lock:
                if self._registered:
                    position = self._tick()
                    self._open.add(position)
                    self._idle_beats = 0
                    return position
            self._enter()

    def enter(self, position: str, batches: Sequence[Sequence[PageKey]]) -> bool:
        """Write the entry of a position; False if the writer has been expelled, so that it counts for nothing."""
        mark = position[16:]
        item = {**journal_key(position), **pack_journal(batches)}
        self._client.call("PutItem", {"TableName": self._table, "Item": item, "ReturnConsumedCapacity": "TOTAL"})
        if self.register().words.get(mark, _EXPELLED).startswith(_EXPELLED):
            self._leave_involuntarily(mark)
            return False
        return True

    def end(self, position: str, *, answered: bool) -> None:
        """End the call of a position; with ``answered`` false the outcome of its batches is unknown."""
        with self._lock:
            if answered:
                self._open.discard(position)
            else:
                self._doubtful.add(position)

    def _enter(self) -> None:
        with self._register_lock:
            if self._registered:
                return
            if self._closing.is_set():
                raise Unavailable("the store is closed")
            with self._lock:
                self._mark = secrets.token_hex(4)
                floor = self._tick()
            self._update("SET #w = :f ADD #g :one", self._mark, {":f": {"S": floor}, ":one": {"N": "1"}}, GENERATION)
            for last in self._ends():
                self.observe(last)
            with self._lock:
                self._registered = True
            if self._beater is None:
                self._beater = threading.Thread(target=self._beat_loop, name="threadline-journal", daemon=True)
                self._beater.start()

    def _leave_involuntarily(self, mark: str) -> None:
        with self._lock:
            if self._mark == mark:
                self._registered = False
            # The process that expelled this one closes what was open.
            self._open -= {position for position in self._open if position.endswith(mark)}

    def last(self) -> str:
        """The position of the last entry; empty: there is none."""
        return max(self._ends(), default="")

    def _ends(self) -> Iterator[str]:
        """The last position in each part of the journal."""
        for pk in journal_pks():
            for item in next(query_pages(self._client, pk, "", None, reverse=True, limit=1)):
                yield item[SK]["S"]

    @property
    def _table(self) -> str:
        return self._client.address.table

    def _update(self, text: str, mark: str, values: Body, *names: str, condition: str = "") -> None:
        request: Body = {
            "TableName": self._table,
            "Key": REGISTER,
            "UpdateExpression": text,
            "ExpressionAttributeNames": {"#w": _WRITER + mark, **{"#" + name: name for name in names}},
            "ReturnConsumedCapacity": "TOTAL",
        }
        if values:
            request["ExpressionAttributeValues"] = values
        if condition:
            request["ConditionExpression"] = condition
        self._client.call("UpdateItem", request)

    # --- the beat ---------------------------------------------------------------------------

    def _beat_loop(self) -> None:
        while not self._closing.wait(BEAT_SECONDS):
            try:
                self.beat()
            except (Unavailable, Gone):
                continue  # the next beat may get through; until then readers wait for us

    def beat(self) -> None:
        """Publish this writer's floor, or leave when idle; settle entries of unknown outcome."""
        with self._register_lock:
            self._settle_doubtful()
            with self._lock:
                if not self._registered:
                    return
                mark, idle = self._mark, not self._open
                self._idle_beats = self._idle_beats + 1 if idle else 0
                leaving = idle and self._idle_beats > IDLE_BEATS
                self._beats += 1
                mark_text = f"{min(self._open, default='') or self._tick()}.{self._beats}"
                self._registered = not leaving
            try:
                if leaving:
                    self._update("REMOVE #w", mark, {})
                else:
                    values = {":f": {"S": mark_text}, ":x": {"S": _EXPELLED}}
                    condition = "attribute_exists(#w) AND NOT begins_with(#w, :x)"
                    self._update("SET #w = :f", mark, values, condition=condition)
            except Refused:
                self._leave_involuntarily(mark)

    def close(self) -> None:
        """Leave the register; a call still under way is lost to it and settled by others."""
        self._closing.set()
        if self._beater is not None:
            self._beater.join()
        self.leave()

    def leave(self) -> None:
        """Leave the register until the next call, unless one is under way: readers wait ten seconds for a writer that
        is registered and frozen."""
        with self._register_lock:
            self._settle_doubtful()
            with self._lock:
                if not self._registered or self._open:
                    return
                mark, self._registered = self._mark, False
            self._update("REMOVE #w", mark, {})

    def _settle_doubtful(self) -> None:
        for position in sorted(self._doubtful):
            self._close_entry(position)
            with self._lock:
                self._doubtful.discard(position)
                self._open.discard(position)

    # --- reading ----------------------------------------------------------------------------

    def register(self) -> Register:
        """The register as it is now."""
        request = {"TableName": self._table, "Key": REGISTER, "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"}
        item = self._client.call("GetItem", request).get("Item") or {}
        words = {
            name.removeprefix(_WRITER): attribute["S"] for name, attribute in item.items() if name.startswith(_WRITER)
        }
        return Register(int(item.get(GENERATION, {}).get("N", "0")), words)

    def settled(self) -> Register:
        """The register, with this process's own position as it is at this instant and the silent ones dealt with."""
        with self._lock:
            own = min((*self._open, self._tick())) if self._registered else ""
            mark = self._mark
        register = self.register()
        if own and not register.words.get(mark, _EXPELLED).startswith(_EXPELLED):
            # The own floor in the register may be half a second old.
            register.words[mark] = max(own, _floor(register.words[mark]))
        for writer in self._silent_among({writer: text for writer, text in register.words.items() if writer != mark}):
            if self._expel(writer, register.words[writer]):
                del register.words[writer]
        return register

    def _silent_among(self, words: dict[str, str]) -> list[str]:
        now = time.monotonic()
        with self._silent_lock:
            seen = self._silent
            self._silent = {
                writer: seen[writer] if seen.get(writer, ("", 0.0))[0] == mark_text else (mark_text, now)
                for writer, mark_text in words.items()
            }
            return [
                writer
                for writer, (mark_text, since) in self._silent.items()
                if mark_text.startswith(_EXPELLED) or now - since > self._expiry_seconds
            ]

    def entries(self, after: str, stop: str, limit: int) -> Iterator[tuple[str, list[list[PageKey]]]]:
        """Entries after a position and before another, in order: their pages, batch by batch."""
        queues = {pk: self._part(pk, after, stop, limit) for pk in journal_pks()}
        heads = {pk: head for pk, queue in queues.items() if (head := next(queue, None)) is not None}
        while heads:
            pk = min(heads, key=lambda pk: heads[pk][0])
            yield heads[pk]
            head = next(queues[pk], None)
            if head is None:
                del heads[pk]
            else:
                heads[pk] = head

    def entries_at(self, positions: Iterable[str]) -> dict[str, list[list[PageKey]]]:
        """The pages of the entries at these positions, batch by batch, as they are now."""
        items = get_many(self._client, [journal_key(position) for position in positions])
        return {item[SK]["S"]: unpack_journal(item) for item in items.values()}

    def _part(self, pk: str, after: str, stop: str, limit: int) -> Iterator[tuple[str, list[list[PageKey]]]]:
        if after >= stop:
            return
        for answer in query_pages(self._client, pk, after or "0", stop, limit=limit):
            for item in answer:
                position = item[SK]["S"]
                if after < position < stop:
                    yield position, unpack_journal(item)

    # --- expelling --------------------------------------------------------------------------

    def _expel(self, writer: str, mark_text: str) -> bool:
        """Close the open entries of a silent writer. Several processes may do so at the same time."""
        marked = mark_text if mark_text.startswith(_EXPELLED) else _EXPELLED + mark_text
        try:
            values = {":x": {"S": marked}, ":f": {"S": mark_text}}
            self._update("SET #w = :x", writer, values, condition="#w = :f")
        except Refused:
            return False  # it has beaten after all, or another process was faster
        for position, batches in self._part(journal_pk(writer), _floor(mark_text)[:16], END, 100):
            if position.endswith(writer):
                self._close_pages(batches)
        self._update("REMOVE #w", writer, {})
        return True

    def _close_entry(self, position: str) -> None:
        for batches in self.entries_at([position]).values():
            self._close_pages(batches)

    def _close_pages(self, batches: Sequence[Sequence[PageKey]]) -> None:
        for keys in batches:
            # One page is enough, because a batch comes as a whole or not at all.
            item = {**page_key(keys[0]), DEAD: {"N": "1"}}
            try:
                condition = "attribute_not_exists(pk)"
                request = {"TableName": self._table, "Item": item, "ConditionExpression": condition}
                self._client.call("PutItem", request)
            except Refused:
                continue


assert JOURNAL_SHARDS < 10, "a journal's partition is named by one digit"
