"""Claims: an effect, and the keys that go with it, belong to one sender before anything leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from threadline.engine.scheduled import pack_effect
from threadline.kernel.errors import LimitExceeded
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import CLAIM_KEYS_MAX, ITEM_BYTES_MAX
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.store import Batch, Check, Item, Key, Put, Store

CLAIMED = "claimed"
"""Table: the effect that has claimed a key, under the workspace. It stays for good."""


class Wanted(NamedTuple):
    """An effect to be claimed."""

    pending: PendingEffect
    """With the claim."""
    keys: list[Key]
    value: bytes
    """The effect as it is stored."""


Claimed = PendingEffect | Literal["taken", "overtaken"]
"""The effect as it lies in the store now; or another effect has one of the keys; or another process has the effect."""


def wanted(pending: PendingEffect, keys: Sequence[str]) -> Wanted:
    """An effect and the keys that go with it. Raises `LimitExceeded` for what no store would take."""
    # Hashed: a key may be longer than a store takes.
    claim_keys = [Key(CLAIMED, f"{pending.workspace}/{short_hash('claim', key)}") for key in dict.fromkeys(keys)]
    if len(claim_keys) > CLAIM_KEYS_MAX:
        raise LimitExceeded(f"it claims {len(claim_keys)} keys; at most {CLAIM_KEYS_MAX} are taken")
    value = pack_effect(pending)
    if len(value) > ITEM_BYTES_MAX:
        raise LimitExceeded("the effect and what is to be noted of it do not fit into one item")
    return Wanted(pending, claim_keys, value)


def claim(store: Store, claims: Sequence[Wanted], check: Check) -> list[Claimed]:
    """Claim these effects, all that can be in one commit; the result for each."""
    refusals = store.commit([_batch(want, check, frozenset()) for want in claims])
    return [
        _claimed(want) if refusal is None else _again(store, want, check)
        for want, refusal in zip(claims, refusals, strict=True)
    ]


def _again(store: Store, want: Wanted, check: Check) -> Claimed:
    """What was refused: the keys may be its own, from an earlier attempt."""
    items = store.get(want.keys)
    holders = {item.value.decode() for item in items if item is not None}
    if holders - {want.pending.id}:
        return "taken"
    own = frozenset(item for item in items if item is not None)
    if not own or store.commit([_batch(want, check, own)])[0] is not None:
        return "overtaken"
    return _claimed(want)


def _batch(want: Wanted, check: Check, own: frozenset[Item]) -> Batch:
    versions = {item.key: item.version for item in own}
    keys: list[Put | Check] = [
        Check(key, versions[key]) if key in versions else Put(key, want.pending.id.encode(), 0) for key in want.keys
    ]
    return Batch(writes=[Put(want.pending.item.key, want.value, want.pending.item.version), *keys, check])


def _claimed(want: Wanted) -> PendingEffect:
    item = want.pending.item
    return want.pending._replace(item=Item(item.key, item.version + 1, want.value))
