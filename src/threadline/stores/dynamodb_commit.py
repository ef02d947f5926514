"""One batch as one transaction: what is asked of DynamoDB, and what its answer means for the port. Does no I/O."""

from __future__ import annotations

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

_ABSENT = "attribute_not_exists(pk)"
_FRAMED_BYTES_MAX = 1_000_000
"""Values of one batch beyond which it gets no new frames: a transaction has 4 MB."""


class Step(NamedTuple):
    """One item of a transaction, and what it means when its condition fails."""

    action: Body
    kind: str
    """``id``, ``page``, ``write`` or ``frame``."""
    name: str
    """For an id the event's; for a write its key as text."""
    expected: int | None = None


class Transaction(NamedTuple):
    """All of a batch."""

    steps: list[Step]
    token: str
    """DynamoDB carries out the same token once, however often it is asked within ten minutes."""
    learnt: dict[Name, Known | None]
    """What is known of the items' frames once it has gone through."""


class Expelled(Exception):
    """The journal's entry was declared dead before its pages were there; the batch is to be told anew."""


class Framed(Exception):
    """Items stand beside other frames than was known; the same batch is to be told with what is known now."""

    def __init__(self, found: dict[Name, Known | None]) -> None:
        super().__init__("there are other frames than was known")
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
        steps.append(Step(_put(clause, item), "id", entry.id))
    for key, chunk in laid:
        steps.append(Step(_put(clause, {**page_key(key), **pack_page(chunk)}), "page", ""))
    # A frame is one more item of the transaction, and has its bytes once more.
    room = BATCH_WRITES_MAX - len(steps) - len(batch.writes)
    if sum(len(write.value) for write in batch.writes if isinstance(write, Put)) > _FRAMED_BYTES_MAX:
        room = 0
    learnt: dict[Name, Known | None] = {}
    for write in batch.writes:
        own = _write_steps(write, place, clause, learnt, framed=room > 0)
        room -= len(own) - 1
        steps += own
    return Transaction(steps, f"{place.position}{place.number:x}.{attempt}", learnt)


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


def _write_steps(
    write: Write, place: Place, clause: Clause, learnt: dict[Name, Known | None], *, framed: bool
) -> list[Step]:
    """A write of the port, and what becomes of the frame beside the item."""
    key, name, expected = item_key(write.key), "/".join(write.key), write.expected
    known = clause.frames.known(write.key)
    if known is not None and expected is not None and known.version != expected:
        known = None
    if isinstance(write, Check):
        check = {"TableName": clause.table, "Key": key, **_condition(expected, clause.now), **_TELL}
        return [Step({"ConditionCheck": check}, "write", name, expected)]
    stamp = known.stamp if known is not None else ""
    learnt[name_of(key)] = None
    made = Shape({})
    if isinstance(write, Put) and expected is not None:
        made = shape(write.key, write.value, known, framed=framed and expected > 0)
        action = {"Put": _versioned(write, made, place, clause, stamp)}
        if made.frame is not None or made.stamp:
            now = Known(expected + 1, made.stamp or place.text, known.frame if made.stamp and known else made.frame)
            learnt[name_of(key)] = now
    elif isinstance(write, Put):
        action = {"Update": unconditional_put(write, place, clause, stamp)}
    else:
        beside = None if expected == 0 else stamp
        condition = _condition(expected, clause.now, beside)
        action = {"Delete": {"TableName": clause.table, "Key": key, **condition, **_TELL}}
    steps = [Step(action, "write", name, expected)]
    if made.frame is not None:
        frame = {
            **frame_key(write.key),
            **packed(made.frame),
            POSITION: {"S": place.text},
            **_expiry(write.key, clause),
        }
        steps.append(Step({"Put": {"TableName": clause.table, "Item": frame}}, "frame", name))
    elif stamp and not made.stamp:
        steps.append(Step({"Delete": {"TableName": clause.table, "Key": frame_key(write.key)}}, "frame", name))
    return steps


def _versioned(put: Put, made: Shape, place: Place, clause: Clause, stamp: str) -> Body:
    assert put.expected is not None
    item = {
        **item_key(put.key), **made.value, VERSION: {"N": str(put.expected + 1)}, POSITION: {"S": place.text},
        **_expiry(put.key, clause),
    }  # fmt: skip
    beside: str | None = stamp
    if made.frame is not None or put.expected == 0:
        beside = None  # whatever frame is there, it is written over; where there is no item, there is no frame
    if made.frame is not None or made.stamp:
        item[FRAME] = {"S": made.stamp or place.text}
    return {"TableName": clause.table, "Item": item, **_condition(put.expected, clause.now, beside), **_TELL}


def _condition(expected: int | None, now: int, stamp: str | None = None) -> Body:
    """What has to hold for a version; an item that has expired counts as absent, though it still lies there.

    And for its frame: it must be the one of this ``stamp``, with an empty one there must be none; None: either will do.
    """
    names: dict[str, str] = {}
    values: Body = {}
    clauses = []
    if expected is not None:
        names["#e"], values[":now"] = EXPIRES, {"N": str(now // SECOND)}
    if expected == 0:
        clauses.append(f"({_ABSENT} OR #e <= :now)")
    elif expected is not None:
        clauses.append("#n = :n AND (attribute_not_exists(#e) OR #e > :now)")
        names["#n"], values[":n"] = VERSION, {"N": str(expected)}
    if stamp is not None:
        names["#f"] = FRAME
        clauses.append("#f = :f" if stamp else "attribute_not_exists(#f)")
        if stamp:
            values[":f"] = {"S": stamp}
    if not clauses:
        return {}
    found: Body = {"ConditionExpression": " AND ".join(clauses), "ExpressionAttributeNames": names}
    return {**found, "ExpressionAttributeValues": values} if values else found


def _expiry(key: Key, clause: Clause) -> Attributes:
    lifetime = clause.lifetimes.get(key.table)
    # Rounded up: nothing may go a moment too early.
    return {} if lifetime is None else {EXPIRES: {"N": str(-(-clause.now // SECOND) + lifetime)}}


def unconditional_put(put: Put, place: Place, clause: Clause, stamp: str = "") -> Body:
    """An update that writes whatever is there and lets the version grow, though nobody has read it.

    Told twice, it would count twice; so it refuses to follow upon itself. `is_own` knows that refusal.
    """
    value = {**packed(put.value), **_expiry(put.key, clause), POSITION: {"S": place.text}}
    gone = [name for name in (PLAIN, DEFLATED, DIFFERENCE, FRAME, EXPIRES) if name not in value]
    sets = ", ".join(f"#{name} = :{name}" for name in value)
    condition = "#f = :f" if stamp else "attribute_not_exists(#f)"
    values: Body = {f":{name}": content for name, content in value.items()} | {":one": {"N": "1"}}
    if stamp:
        values[":f"] = {"S": stamp}
    return {
        "TableName": clause.table,
        "Key": item_key(put.key),
        "UpdateExpression": f"SET {sets} REMOVE {', '.join('#' + name for name in gone)} ADD #{VERSION} :one",
        "ConditionExpression": f"(attribute_not_exists(#p) OR #p <> :p) AND {condition}",
        "ExpressionAttributeNames": {f"#{name}": name for name in (*value, *gone, VERSION)},
        "ExpressionAttributeValues": values,
        **_TELL,
    }


def unconditional_delete(delete: Delete, clause: Clause) -> Body:
    """A deletion that means the same when it is told twice; it refuses if there is a frame to be deleted as well."""
    return {"TableName": clause.table, "Key": item_key(delete.key), **_condition(None, clause.now, ""), **_TELL}


def is_own(item: Attributes, place: Place) -> bool:
    """Whether an item was written by this very batch."""
    if PAGE in item:
        return page_of(item).sort[17:].startswith(place.text + ".")
    return bool(item.get(POSITION, {}).get("S") == place.text)


def meaning(made: Transaction, reasons: Sequence[Body], place: Place, clause: Clause) -> Refusal | None:
    """What a cancelled transaction says to the caller; None if it was the second telling of one that went through.

    Raises `Expelled` if the entry of the journal was given up, `Framed` if only what was known of frames is wrong.
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
    raise Framed(dict(framed(item) for _, item in failed))


def framed(item: Attributes) -> tuple[Name, Known | None]:
    """What an item that was found says of its frame."""
    known = Known(int(item[VERSION]["N"]), item[FRAME]["S"], None) if FRAME in item else None
    return name_of(item), known


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
