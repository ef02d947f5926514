"""One batch as one transaction: what is asked of DynamoDB, and what its answer means for the port. Does no I/O."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.store import Batch, Check, Delete, Key, Put, Refusal
from threadline.kernel.time import SECOND
from threadline.stores.dynamodb_client import CONDITION_FAILED, Body
from threadline.stores.dynamodb_frames import Frames, Known, Shape, frame_key, shape
from threadline.stores.dynamodb_layout import (
    DEFLATED,
    DIFFERENCE,
    DIGEST,
    EXPIRES,
    FRAME,
    PAGE,
    PLAIN,
    POSITION,
    VERSION,
    Attributes,
    PageKey,
    Place,
    has_expired,
    id_key,
    item_key,
    pack_page,
    packed,
    page_key,
    pages,
)
from threadline.stores.dynamodb_reading import Name, name_of

Write = Put | Delete | Check
_Condition = tuple[str, Attributes]
"""A condition and the values that it names; a name in it is an attribute's, behind a ``#``."""

_ABSENT = "attribute_not_exists(pk)"
_FRAMED_BYTES_MAX = 1_000_000
"""Values of one batch beyond which it gets no new frames: a transaction has 4 MB."""


class Step(NamedTuple):
    """One item of a transaction, and what it means when its condition fails."""

    action: Body
    kind: str
    """``id``, ``page``, ``frame``, ``write``, or ``bare``: a write that asks for no frame to be there."""
    item: Name = ("", "")
    name: str = ""
    """For an id the event's; for a write its key as text."""
    expected: int | None = None


class Transaction(NamedTuple):
    """All of a batch."""

    steps: list[Step]
    token: str
    """DynamoDB carries out the same token once, however often it is asked within ten minutes."""
    learnt: dict[Name, Known | None]
    """The frames that it makes."""


class Expelled(Exception):
    """The journal's entry was declared dead before its pages were there; the batch is to be told anew."""


class Framed(Exception):
    """Items stand beside other frames than was thought, and nothing else is wrong; the batch is to be told anew.

    ``found`` says of each whether its frame has to be dissolved first.
    """

    def __init__(self, found: dict[Name, bool]) -> None:
        super().__init__("there are other frames than was thought")
        self.found = found


class Clause(NamedTuple):
    """What the table is called and when it is: what every request of a call has in common."""

    table: str
    now: int
    lifetimes: dict[str, int]
    """Tables of the port whose items expire, and after how many seconds."""
    frames: Frames


def repeated_id(batch: Batch) -> str | None:
    """The first id that stands twice in a batch."""
    seen = set()
    for entry in batch.events:
        if entry.id in seen:
            return entry.id
        seen.add(entry.id)
    return None


def transaction(batch: Batch, place: Place, clause: Clause, attempt: int = 0) -> Transaction:
    """The transaction that commits a batch: ids, pages, and the writes of the port under their conditions."""
    steps = []
    laid = pages(batch.events, place)
    lies = {entry.id: key for key, chunk in laid for _, entry in chunk}
    for entry in batch.events:
        item = {**id_key(entry.id), DIGEST: {"N": str(entry.digest)}, PAGE: {"S": _page_text(lies[entry.id])}}
        steps.append(Step(_put(clause, item), "id", name=entry.id))
    for key, chunk in laid:
        steps.append(Step(_put(clause, {**page_key(key), **pack_page(chunk)}), "page"))
    # A frame is one more item of the transaction, and has its bytes once more.
    room = BATCH_WRITES_MAX - len(steps) - len(batch.writes)
    if sum(len(write.value) for write in batch.writes if isinstance(write, Put)) > _FRAMED_BYTES_MAX:
        room = 0
    learnt: dict[Name, Known | None] = {}
    for write in batch.writes:
        made, bare = None, isinstance(write, Delete)
        if isinstance(write, Put):
            bare = write.key.table in clause.lifetimes
            made = _shaped(write, clause, room=room > 0)
            if made.frame is not None:
                room -= 1
                frame = {**frame_key(item_key(write.key)), **packed(made.frame), POSITION: {"S": place.text}}
                steps.append(Step({"Put": {"TableName": clause.table, "Item": frame}}, "frame"))
                learnt[name_of(item_key(write.key))] = Known(place.text, made.frame)
        steps.append(_write_step(write, place, clause, made, bare=bare))
    return Transaction(steps, f"{place.position}{place.number:x}.{attempt}", learnt)


def _shaped(put: Put, clause: Clause, *, room: bool) -> Shape:
    """A frame is for what was written before and will be written again; whoever expects nothing has not read it."""
    if not put.expected or put.key.table in clause.lifetimes:
        return Shape(packed(put.value))
    return shape(put.key, put.value, clause.frames.known(put.key), room=room)


def batch_pages(batch: Batch, place: Place) -> list[PageKey]:
    """The pages on which a batch's events will be."""
    return [key for key, _ in pages(batch.events, place)]


def _page_text(key: PageKey) -> str:
    return f"{key.thread}/{key.sort}"


def page_of(found: Attributes) -> PageKey:
    """Where the event of an id's item is."""
    thread, _, sort = found[PAGE]["S"].partition("/")
    return PageKey(thread, sort)


def _put(clause: Clause, item: Attributes) -> Body:
    return {"Put": {"TableName": clause.table, "Item": item, "ConditionExpression": _ABSENT, **_TELL}}


_TELL = {"ReturnValuesOnConditionCheckFailure": "ALL_OLD"}


def _write_step(write: Write, place: Place, clause: Clause, made: Shape | None, *, bare: bool) -> Step:
    """A write of the port under its conditions; ``made`` is how a value is told, ``bare`` that there is no frame."""
    request: Body = {"TableName": clause.table, "Key": item_key(write.key), **_TELL}
    conditions = _conditions(write.expected, clause.now)
    if bare:
        conditions.append((f"attribute_not_exists(#{FRAME})", {}))
    elif made is not None and made.mark:
        conditions.append((f"#{FRAME} = :{FRAME}", {f":{FRAME}": {"S": made.mark}}))
    action: Body = {}
    if made is None:
        action["ConditionCheck" if isinstance(write, Check) else "Delete"] = {**request, **_expression(conditions)}
    elif write.expected == 0:
        del request["Key"]
        item = {**item_key(write.key), **made.value, VERSION: {"N": "1"}, **_marks(write.key, place, clause)}
        action["Put"] = {**request, "Item": item, **_expression(conditions)}
    else:
        value = {**made.value, **_marks(write.key, place, clause)}
        if made.frame is not None:
            value[FRAME] = {"S": place.text}
        if write.expected is None:
            # It counts up what nobody has read, so it refuses to follow upon itself. `is_own` knows that refusal.
            conditions.append((f"(attribute_not_exists(#{POSITION}) OR #{POSITION} <> :{POSITION})", {}))
        action["Update"] = {**request, **_update(value, conditions)}
    return Step(action, "bare" if bare else "write", name_of(item_key(write.key)), "/".join(write.key), write.expected)


def _update(value: Attributes, conditions: Sequence[_Condition]) -> Body:
    """An update that leaves nothing of the old value but its frame, and counts the version up."""
    gone = [name for name in (PLAIN, DEFLATED, DIFFERENCE, EXPIRES) if name not in value]
    expression = _expression(conditions)
    values = {f":{name}": content for name, content in value.items()} | {":one": {"N": "1"}}
    sets = ", ".join(f"#{name} = :{name}" for name in value)
    return {
        "UpdateExpression": f"SET {sets} REMOVE {', '.join('#' + name for name in gone)} ADD #{VERSION} :one",
        "ConditionExpression": expression["ConditionExpression"],
        "ExpressionAttributeNames": expression["ExpressionAttributeNames"]
        | {f"#{name}": name for name in (*value, *gone, VERSION)},
        "ExpressionAttributeValues": {**values, **expression.get("ExpressionAttributeValues", {})},
    }


def _conditions(expected: int | None, now: int) -> list[_Condition]:
    """What has to hold for a version; an item that has expired counts as absent, though it still lies there."""
    if expected is None:
        return []
    moment = {":now": {"N": str(now // SECOND)}}
    if expected == 0:
        return [(f"({_ABSENT} OR #{EXPIRES} <= :now)", moment)]
    living = f"(attribute_not_exists(#{EXPIRES}) OR #{EXPIRES} > :now)"
    return [(f"#{VERSION} = :version", {":version": {"N": str(expected)}}), (living, moment)]


def _expression(conditions: Sequence[_Condition]) -> Body:
    """All conditions together, with the names and values that they use."""
    if not conditions:
        return {}
    text = " AND ".join(condition for condition, _ in conditions)
    names = {name: name[1:] for name in re.findall(r"#\w+", text)}
    values = {name: value for _, used in conditions for name, value in used.items()}
    found: Body = {"ConditionExpression": text}
    if names:
        found["ExpressionAttributeNames"] = names
    if values:
        found["ExpressionAttributeValues"] = values
    return found


def _marks(key: Key, place: Place, clause: Clause) -> Attributes:
    """Who wrote an item, and when it expires."""
    marks: Attributes = {POSITION: {"S": place.text}}
    lifetime = clause.lifetimes.get(key.table)
    if lifetime is not None:
        # Rounded up: nothing may go a moment too early.
        marks[EXPIRES] = {"N": str(-(-clause.now // SECOND) + lifetime)}
    return marks


def is_own(item: Attributes, place: Place) -> bool:
    """Whether an item was written by this very batch."""
    if PAGE in item:
        return page_of(item).sort[17:].startswith(place.text + ".")
    return bool(item.get(POSITION, {}).get("S") == place.text)


def meaning(made: Transaction, reasons: Sequence[Body], place: Place, clause: Clause) -> Refusal | None:
    """What a cancelled transaction says to the caller; None if it was the second telling of one that went through.

    Raises `Expelled` if the entry of the journal was given up, `Framed` if only what was thought of frames is wrong.
    """
    failed = [
        (step, reason.get("Item") or {})
        for step, reason in zip(made.steps, reasons, strict=True)
        if reason.get("Code") == CONDITION_FAILED
    ]
    # Ten minutes after the first telling a token is forgotten; what the batch wrote is not.
    if any(is_own(item, place) for _, item in failed):
        return None
    for step, _ in failed:
        if step.kind == "id":
            return Refusal("event_exists", step.name)
    if any(step.kind == "page" for step, _ in failed):
        raise Expelled
    for step, item in failed:
        found = 0 if not item or has_expired(item, clause.now) else int(item[VERSION]["N"])
        if step.expected is not None and step.expected != found:
            return Refusal("version", f"{step.name}: expected {step.expected}, found {found}")
    raise Framed({step.item: step.kind == "bare" for step, _ in failed})


def chains(batches: Sequence[Batch], numbers: Sequence[int]) -> list[list[int]]:
    """Batches that must follow each other, because they share an event, a thread or an item; others may go at once."""
    chain_of: dict[object, list[int]] = {}
    for number in numbers:
        names = _names(batches[number])
        joined = {id(chain): chain for name in names if (chain := chain_of.get(name)) is not None}
        longest = max(joined.values(), key=len, default=[])
        for chain in joined.values():
            if chain is not longest:
                longest += chain
                chain_of.update((name, longest) for other in chain for name in _names(batches[other]))
        longest.append(number)
        chain_of.update((name, longest) for name in names)
        if not names:
            chain_of[number] = longest
    return [sorted(chain) for chain in {id(chain): chain for chain in chain_of.values()}.values()]


def _names(batch: Batch) -> set[object]:
    return {
        *(entry.id for entry in batch.events),
        *(entry.thread for entry in batch.events),
        *(write.key for write in batch.writes),
    }
