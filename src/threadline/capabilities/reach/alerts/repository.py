"""Versions of alerts in the store: what operations write, what is in force, and what was in force at an instant."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from threadline.capabilities.reach.alerts.definition import ALERTS, Active, Alert, Version
from threadline.kernel.documents import Documents, Numbered, changed
from threadline.kernel.errors import Conflict, LimitExceeded, NotFound
from threadline.kernel.limits import ALERT_VERSIONS_MAX, ALERTS_MAX, BATCH_WRITES_MAX
from threadline.kernel.operation import Context
from threadline.kernel.personal import StoreTable
from threadline.kernel.store import Check, Delete, Key, Put

NEWEST = "alert_newest"
"""Table: the newest version of each alert of a workspace, withdrawn or not."""
VERSIONS = "alert_version"
"""Table: all versions of each alert."""
_NEWEST, _VERSIONS = Documents(NEWEST, Version), Numbered(VERSIONS, Version)


def active(context: Context) -> Active:
    """The alerts of the workspace that are not withdrawn, as the store has them now."""
    alerts: Active = context.engine.shared.fresh(context.workspace, ALERTS)
    return alerts


def newest(context: Context, id: str) -> Version:
    """The newest version of an alert; raises `NotFound`."""
    stored = _NEWEST.find(context.engine.store, context.workspace, id)
    if stored is None:
        raise _unknown(id)
    return stored.document


def _unknown(id: str) -> NotFound:
    return NotFound(f"there is no alert {id[:64]!r}", hint="`alerts_list` lists them all")


def page(context: Context, after: str, limit: int) -> list[tuple[str, Version]]:
    """The newest versions of a page of alerts, by id."""
    return _NEWEST.page(context.engine.store, context.workspace, after, limit)


def versions(context: Context, id: str, after: int, limit: int) -> list[Version]:
    """The versions of an alert after the ``after``-th, oldest first."""
    return _VERSIONS.after(context.engine.store, context.workspace, id, after, limit)


def version(context: Context, id: str, number: int) -> Version:
    """One version of an alert; raises `NotFound`."""
    known = _VERSIONS.find(context.engine.store, context.workspace, id, number)
    if known is None:
        raise NotFound(f"alert {id[:64]!r} has no version {number}")
    return known


def at_instant(context: Context, at: int) -> Iterator[tuple[str, Version]]:
    """The version of each alert that was in force at an instant, by id; withdrawn ones are left out."""
    for id, known in _NEWEST.all(context.engine.store, context.workspace):
        latest = _latest(context, id, known, at)
        if latest.at <= at and not latest.withdrawn:
            yield id, latest


def _latest(context: Context, id: str, newest: Version, at: int) -> Version:
    """The last version that was written by an instant; the first one if none was."""
    if newest.at <= at:
        return newest
    first, last = 1, newest.number - 1
    while first < last:
        middle = (first + last + 1) // 2
        if version(context, id, middle).at <= at:
            first = middle
        else:
            last = middle - 1
    return version(context, id, first)


def write(context: Context, id: str, alert: Alert, *, shown_again: bool, expected: int | None) -> tuple[Version, bool]:
    """A new version, and whether it is new: what says the same as the newest version is that version."""

    def change(before: Version | None) -> Version | None:
        if before is not None and not before.withdrawn and before.alert == alert and not shown_again:
            return None
        known = 0 if before is None else before.number
        if expected is not None and expected != known:
            raise Conflict(f"the newest version of alert {id!r} is {known}, not {expected}; read it and decide again")
        if before is None or before.withdrawn or before.alert.is_over(context.now):
            _refuse_too_many(context, id)
        again = known + 1 if before is None or shown_again else before.shown_again_from
        return _next(context, before, alert, shown_again_from=again)

    return _changed(context, id, change)


def withdraw(context: Context, id: str, note: str) -> tuple[Version, bool]:
    """The version that withdraws an alert, and whether it is new; raises `NotFound`."""

    def change(before: Version | None) -> Version | None:
        if before is None:
            raise _unknown(id)
        if before.withdrawn:
            return None
        again = before.shown_again_from
        return _next(context, before, before.alert, withdrawn=True, note=note, shown_again_from=again)

    return _changed(context, id, change)


def _next(
    context: Context,
    before: Version | None,
    alert: Alert,
    *,
    shown_again_from: int,
    withdrawn: bool = False,
    note: str = "",
) -> Version:
    number = 1 if before is None else before.number + 1
    if number > ALERT_VERSIONS_MAX:
        raise LimitExceeded(f"an alert has at most {ALERT_VERSIONS_MAX:,} versions; write it under another id")
    # Clocks of processes differ: the instants of versions must be in their order, or the past would be ambiguous.
    at = max(context.engine.recorder.clock(), 0 if before is None else before.at + 1)
    return Version(
        number=number,
        at=at,
        by=context.source,
        alert=alert,
        withdrawn=withdrawn,
        note=note,
        shown_again_from=shown_again_from,
    )


def _refuse_too_many(context: Context, id: str) -> None:
    others = (other for name, other in active(context).items() if name != id)
    if sum(not other.alert.is_over(context.now) for other in others) >= ALERTS_MAX:
        raise LimitExceeded(f"{ALERTS_MAX} alerts are in force or lie ahead, which is the limit; withdraw some first")


def _changed(context: Context, id: str, change: Callable[[Version | None], Version | None]) -> tuple[Version, bool]:
    """Commit a version; ``change`` is asked again with what is so then if another process was faster."""

    def attempt() -> tuple[Version, bool] | None:
        stored = _NEWEST.find(context.engine.store, context.workspace, id)
        before, expected = (None, 0) if stored is None else stored
        made = change(before)
        if made is None:
            assert before is not None, "only an alert that exists can stay as it is"
            return before, False
        in_force = Key(ALERTS, context.workspace, id)
        put = _NEWEST.put(context.workspace, id, made, expected)
        writes: list[Put | Delete | Check] = [
            put,
            _VERSIONS.put(context.workspace, id, made.number, made),
            Delete(in_force) if made.withdrawn else Put(in_force, put.value),
            *_over(context, id),
        ]
        return (made, True) if context.engine.shared.change(context.workspace, ALERTS, writes) is None else None

    return changed(f"the alert {id!r}", attempt)


def _over(context: Context, id: str) -> Iterator[Delete | Check]:
    """Take alerts that are over out of those that every reader goes through; their versions stay."""
    ended = [
        (name, entry) for name, entry in active(context).items() if name != id and entry.alert.is_over(context.now)
    ]
    for name, entry in sorted(ended, key=lambda pair: pair[0])[: BATCH_WRITES_MAX // 4]:
        yield Delete(Key(ALERTS, context.workspace, name))
        # Another process may just have prolonged it. The item is written once for each version.
        yield Check(_NEWEST.key(context.workspace, name), entry.number)


_OPERATORS = "what operators tell everybody"
NEWEST_TABLE = StoreTable(NEWEST, "nobody", why=_OPERATORS)
VERSIONS_TABLE = StoreTable(VERSIONS, "nobody", why=_OPERATORS)
