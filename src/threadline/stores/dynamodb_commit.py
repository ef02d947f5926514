"""One batch as one transaction: what is asked of DynamoDB, and what its answer means for the port. Does no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from threadline.kernel.store import Batch, Check, Delete, Key, Put, Refusal
from threadline.kernel.time import SECOND
from threadline.stores.dynamodb_client import CONDITION_FAILED, Body
from threadline.stores.dynamodb_layout import (
    DEFLATED,
    DIGEST,
    EXPIRES,
    PAGE,
    PLAIN,
    POSITION,
    VERSION,
    Attributes,
    PageKey,
    Place,
    id_key,
    item_key,
    pack_page,
    packed,
    page_key,
    pages,
)

Write = Put | Delete | Check

_ABSENT = "attribute_not_exists(pk)"


class Step(NamedTuple):
    """One item of a transaction, and what it means when its condition fails."""

    action: Body
    kind: str
    """``id``, ``page`` or ``write``."""
    name: str
    """For an id the event's; for a write its key as text."""
    expected: int | None = None


class Transaction(NamedTuple):
    """All of a batch."""

    steps: list[Step]
    token: str
    """DynamoDB carries out the same token once, however often it is asked within ten minutes."""


class Expelled(Exception):
    """The journal's entry was declared dead before its pages were there; the batch is to be told anew."""


class Clause(NamedTuple):
    """What the table is called and when it is: what every request of a call has in common."""

    table: str
    now: int
    lifetimes: dict[str, int]
    """Tables of the port whose items expire, and after how many seconds."""


def repeated_id(batch: Batch) -> str | None:
    """The first id that stands twice in a batch."""
    seen = set()
    for entry in batch.events:
        if entry.id in seen:
            return entry.id
        seen.add(entry.id)
    return None


def transaction(batch: Batch, place: Place, clause: Clause) -> Transaction:
    """The transaction that commits a batch: ids, pages, and the writes of the port under their conditions."""
    steps = []
    laid = pages(batch.events, place)
    lies = {entry.id: key for key, chunk in laid for _, entry in chunk}
    for entry in batch.events:
        item = {**id_key(entry.id), DIGEST: {"N": str(entry.digest)}, PAGE: {"S": _page_text(lies[entry.id])}}
        steps.append(Step(_put(clause, item), "id", entry.id))
    for key, chunk in laid:
        steps.append(Step(_put(clause, {**page_key(key), **pack_page(chunk)}), "page", ""))
    steps += [_write_step(write, place, clause) for write in batch.writes]
    return Transaction(steps, f"{place.position}{place.number:x}")


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


def _write_step(write: Write, place: Place, clause: Clause) -> Step:
    request: Body = {"TableName": clause.table, **_condition(write.expected, clause.now), **_TELL}
    if isinstance(write, Put) and write.expected is not None:
        request["Item"] = {
            **item_key(write.key), **packed(write.value), VERSION: {"N": str(write.expected + 1)},
            POSITION: {"S": place.text}, **_expiry(write.key, clause),
        }  # fmt: skip
        action = {"Put": request}
    elif isinstance(write, Put):
        action = {"Update": _unconditional_put(write, place, clause)}
    elif isinstance(write, Delete):
        action = {"Delete": {**request, "Key": item_key(write.key)}}
    else:
        action = {"ConditionCheck": {**request, "Key": item_key(write.key)}}
    return Step(action, "write", "/".join(write.key), write.expected)


def _condition(expected: int | None, now: int) -> Body:
    """What has to hold for a version; an item that has expired counts as absent, though it still lies there."""
    if expected is None:
        return {}
    names, values = {"#e": EXPIRES}, {":now": {"N": str(now // SECOND)}}
    if expected == 0:
        text = f"{_ABSENT} OR #e <= :now"
    else:
        text = "#n = :n AND (attribute_not_exists(#e) OR #e > :now)"
        names["#n"], values[":n"] = VERSION, {"N": str(expected)}
    return {"ConditionExpression": text, "ExpressionAttributeNames": names, "ExpressionAttributeValues": values}


def _expiry(key: Key, clause: Clause) -> Attributes:
    lifetime = clause.lifetimes.get(key.table)
    # Rounded up: nothing may go a moment too early.
    return {} if lifetime is None else {EXPIRES: {"N": str(-(-clause.now // SECOND) + lifetime)}}


def _unconditional_put(put: Put, place: Place, clause: Clause) -> Body:
    """An update that writes whatever is there and lets the version grow, though nobody has read it.

    Told twice, it would count twice; so it refuses to follow upon itself. `is_own` knows that refusal.
    """
    value = packed(put.value)
    sets, gone = ["#p = :p"], [DEFLATED if PLAIN in value else PLAIN]
    values: Body = {":p": {"S": place.text}, ":one": {"N": "1"}}
    for name, content in {**value, **_expiry(put.key, clause)}.items():
        sets.append(f"#{name} = :{name}")
        values[f":{name}"] = content
    if EXPIRES not in _expiry(put.key, clause):
        gone.append(EXPIRES)
    used = {POSITION, PLAIN, DEFLATED, VERSION, EXPIRES}
    text = f"SET {', '.join(sets)} REMOVE {', '.join('#' + name for name in gone)} ADD #{VERSION} :one"
    return {
        "TableName": clause.table,
        "Key": item_key(put.key),
        "UpdateExpression": text,
        "ConditionExpression": "attribute_not_exists(#p) OR #p <> :p",
        "ExpressionAttributeNames": {f"#{name}": name for name in used},
        "ExpressionAttributeValues": values,
        **_TELL,
    }


def is_own(item: Attributes, place: Place) -> bool:
    """Whether an item was written by this very batch."""
    if PAGE in item:
        return page_of(item).sort[17:].startswith(place.text + ".")
    return bool(item.get(POSITION, {}).get("S") == place.text)


def meaning(made: Transaction, reasons: Sequence[Body], place: Place) -> Refusal | None:
    """What a cancelled transaction says to the caller; None if it was the second telling of one that went through.

    Raises `Expelled` if the entry of the journal was given up.
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
    step, item = failed[0]
    found = item.get(VERSION, {}).get("N", "0")
    return Refusal("version", f"{step.name}: expected {step.expected}, found {found}")


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
