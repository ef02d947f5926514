"""One batch as one transaction: the request to DynamoDB, and the meaning of its answer for the port. No I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.store import Batch, Check, Delete, Key, Put, Refusal
from threadline.kernel.time import SECOND
from threadline.stores.dynamodb.client import CONDITION_FAILED, Body
from threadline.stores.dynamodb.difference import Frame, Shape, shape
from threadline.stores.dynamodb.layout import (
    DEFLATED,
    DIFFERENCE,
    EXPIRES,
    FRAME,
    PAGE,
    POSITION,
    ROW,
    VERSION,
    Attributes,
    PageKey,
    Place,
    frame_key,
    has_expired,
    id_item,
    item_key,
    pack_page,
    packed,
    page_key,
    page_of,
    pages,
    version_of,
)

Write = Put | Delete | Check

_ABSENT = "attribute_not_exists(pk)"
_UNFRAMED = f"attribute_not_exists(#{FRAME})"
_FRAMED_BYTES_MAX = 2_000_000
"""Values of one batch beyond which it gets no new frames: a transaction has 4 MB for them and for all keys."""


class Step(NamedTuple):
    """One item of a transaction, and what it means when its condition fails."""

    action: Body
    kind: str
    """``id``, ``page``, ``frame`` or ``write``."""
    id: str = ""
    """The event's, if it is an id."""
    write: Write | None = None
    """Of the port, if it is one."""


class Transaction(NamedTuple):
    """All of a batch."""

    steps: list[Step]
    token: str
    """DynamoDB carries out the same token once, however often it is asked within ten minutes."""
    frames: dict[Key, Frame]
    """Those that it makes."""


class Expelled(Exception):
    """The journal's entry was closed before its pages were there; the batch has to be sent again."""


class Framed(Exception):
    """Items have other frames than expected, and nothing else is wrong; the batch has to be sent again."""

    def __init__(self, writes: Sequence[Write]) -> None:
        super().__init__("there are other frames than was thought")
        self.writes = writes


class Clause(NamedTuple):
    """The table's name and the time: common to all requests of a call."""

    table: str
    now: int
    lifetimes: dict[str, int]
    """Tables of the port whose items expire, and after how many seconds."""

    def is_bare(self, write: Write) -> bool:
        """Whether an item may have no frame when this is written."""
        return isinstance(write, Delete) or (isinstance(write, Put) and write.key.table in self.lifetimes)


def repeated_id(batch: Batch) -> str | None:
    """The first id that stands twice in a batch."""
    seen = set()
    for entry in batch.events:
        if entry.id in seen:
            return entry.id
        seen.add(entry.id)
    return None


def transaction(batch: Batch, place: Place, clause: Clause, known: Mapping[Key, Frame], attempt: int) -> Transaction:
    """The transaction that commits a batch: ids, pages, and the writes of the port under their conditions.

    ``known`` are the frames last seen; if these have changed, the batch is sent again with another token.
    """
    laid = pages(batch.events, place)
    lies = {entry.id: key for key, chunk in laid for _, entry in chunk}
    steps = [Step(_put(clause, id_item(entry, lies[entry.id])), "id", entry.id) for entry in batch.events]
    steps += [Step(_put(clause, {**page_key(key), **pack_page(chunk)}), "page") for key, chunk in laid]
    frames: dict[Key, Frame] = {}
    # A frame is one more item of the transaction.
    room = BATCH_WRITES_MAX - len(steps) - len(batch.writes)
    if sum(len(write.value) for write in batch.writes if isinstance(write, Put)) > _FRAMED_BYTES_MAX:
        room = 0
    for write in batch.writes:
        written = None
        if isinstance(write, Put):
            written = _shape(write, clause, known.get(write.key), room=len(frames) < room)
            if written.framed:
                frames[write.key] = Frame(place.mark, (write.expected or 0) + 1, write.value)
                steps.append(Step({"Put": {"TableName": clause.table, "Item": _frame_item(write, place)}}, "frame"))
        steps.append(Step(_action(write, written, place, clause), "write", write=write))
    return Transaction(steps, f"{place.position}{place.number:x}.{attempt}", frames)


def _shape(put: Put, clause: Clause, frame: Frame | None, *, room: bool) -> Shape:
    # An unconditional write has not read the item, and a first write has no frame.
    if not put.expected or clause.is_bare(put):
        return Shape(packed(put.value))
    return shape(put.key, put.value, put.expected + 1, frame, room=room)


def _frame_item(put: Put, place: Place) -> Attributes:
    version = {"N": str((put.expected or 0) + 1)}
    return {**frame_key(put.key), **packed(put.value), VERSION: version, POSITION: place.mark}


def batch_pages(batch: Batch, place: Place) -> list[PageKey]:
    """The pages of a batch's events."""
    return [key for key, _ in pages(batch.events, place)]


def _put(clause: Clause, item: Attributes) -> Body:
    return {"Put": {"TableName": clause.table, "Item": item, "ConditionExpression": _ABSENT, **_RETURN_OLD}}


_RETURN_OLD = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def _action(write: Write, written: Shape | None, place: Place, clause: Clause) -> Body:
    """A write of the port under its conditions; ``written`` is how its value is written."""
    conditions, values = _conditions(write.expected, clause.now)
    if clause.is_bare(write):
        conditions.append(_UNFRAMED)
    if written is None:
        body = {"Key": item_key(write.key), **_expressed(clause, values, conditions)}
        return {"ConditionCheck" if isinstance(write, Check) else "Delete": body}
    assert isinstance(write, Put)
    attributes = {**written.attributes, POSITION: place.mark}
    lifetime = clause.lifetimes.get(write.key.table)
    if lifetime is not None:
        # Rounded up: nothing may go a moment too early.
        attributes[EXPIRES] = {"N": str(-(-clause.now // SECOND) + lifetime)}
    if write.expected == 0:
        item = {**item_key(write.key), **attributes, VERSION: {"N": str(write.begins)}}
        return {"Put": {"Item": item, **_expressed(clause, values, conditions)}}
    if written.framed:
        attributes[FRAME] = place.mark
    elif written.mark:
        conditions.append(f"#{FRAME} = :mark")
        values[":mark"] = written.mark
    if write.expected is None:
        # It increments a version that it has not read, so a repeated request is refused; `is_own` recognises that.
        conditions.append(f"(attribute_not_exists(#{POSITION}) OR #{POSITION} <> :{POSITION})")
    # An update leaves the mark of a frame where it is, and nothing else of what was there.
    gone = [f"#{name}" for name in (ROW, DEFLATED, DIFFERENCE, EXPIRES) if name not in attributes]
    sets = [f"#{name} = :{name}" for name in attributes]
    sets.append(f"#{VERSION} = if_not_exists(#{VERSION}, :before) + :one")
    update = f"SET {', '.join(sets)} REMOVE {', '.join(gone)}"
    values |= {
        ":one": {"N": "1"},
        ":before": {"N": str(write.begins - 1)},
        **{f":{name}": value for name, value in attributes.items()},
    }
    return {"Update": {"Key": item_key(write.key), **_expressed(clause, values, conditions, update)}}


def _conditions(expected: int | None, now: int) -> tuple[list[str], Attributes]:
    """The condition on a version; an expired item counts as absent, though it is still stored."""
    if expected is None:
        return [], {}
    moment = {":now": {"N": str(now // SECOND)}}
    if expected == 0:
        return [f"({_ABSENT} OR #{EXPIRES} <= :now)"], moment
    living = f"(attribute_not_exists(#{EXPIRES}) OR #{EXPIRES} > :now)"
    return [f"#{VERSION} = :version", living], {":version": {"N": str(expected)}, **moment}


def _expressed(clause: Clause, values: Attributes, conditions: Sequence[str], update: str = "") -> Body:
    """A request's expressions, with the names and values used in them: DynamoDB refuses unused ones."""
    condition = " AND ".join(conditions)
    names = {name: name[1:] for name in re.findall(r"#\w+", condition + update)}
    request = {
        "ConditionExpression": condition,
        "UpdateExpression": update,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    return {"TableName": clause.table, **_RETURN_OLD, **{name: value for name, value in request.items() if value}}


def is_own(item: Attributes, place: Place) -> bool:
    """Whether an item was written by this very batch."""
    if PAGE in item:
        return page_of(item).sort[17:].startswith(place.text + ".")
    return bool(item.get(POSITION) == place.mark)


def meaning(made: Transaction, reasons: Sequence[Body], place: Place, now: int) -> Refusal | None:
    """The refusal of a cancelled transaction; None if it repeats one that went through.

    Raises `Expelled` if the entry of the journal was closed, `Framed` if only frames have changed.
    """
    failed = [
        (step, reason.get("Item") or {})
        for step, reason in zip(made.steps, reasons, strict=True)
        if reason.get("Code") == CONDITION_FAILED
    ]
    # DynamoDB forgets a token after ten minutes; the writes of the batch are still there.
    if any(is_own(item, place) for _, item in failed):
        return None
    for step, _ in failed:
        if step.kind == "id":
            return Refusal("event_exists", step.id)
    if any(step.kind == "page" for step, _ in failed):
        raise Expelled
    writes = [(step.write, item) for step, item in failed if step.write is not None]
    for write, item in writes:
        version = 0 if not item or has_expired(item, now) else version_of(item)
        if write.expected not in (None, version):
            return Refusal("version", f"{'/'.join(write.key)}: expected {write.expected}, found {version}")
    raise Framed([write for write, _ in writes])


def chains(batches: Sequence[Batch], numbers: Sequence[int]) -> list[list[int]]:
    """Batches that must follow each other: they share an event, a thread or an item, or one builds on the other.

    Others may go at once.
    """
    chain_of: dict[object, list[int]] = {}
    for number in numbers:
        names = _names(batches, number)
        joined = {id(chain): chain for name in names if (chain := chain_of.get(name)) is not None}
        longest = max(joined.values(), key=len, default=[])
        for chain in joined.values():
            if chain is not longest:
                longest += chain
                chain_of.update((name, longest) for other in chain for name in _names(batches, other))
        longest.append(number)
        chain_of.update((name, longest) for name in names)
    return [sorted(chain) for chain in {id(chain): chain for chain in chain_of.values()}.values()]


def _names(batches: Sequence[Batch], number: int) -> set[object]:
    batch = batches[number]
    return {
        number,
        *batch.builds_on,
        *(entry.id for entry in batch.events),
        *(entry.thread for entry in batch.events),
        *(write.key for write in batch.writes),
    }
