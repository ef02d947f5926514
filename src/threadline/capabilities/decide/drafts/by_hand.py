"""What is made by hand, changed: a new version of its text and the job that brings everybody up to it, in one commit.

A text is checked with all files, as a reload reads it, before there is a version of it. What is killed before the
commit has done nothing; after it every process of the store takes the version in, and the job waits for one that has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from threadline.capabilities.decide.drafts import repository
from threadline.capabilities.decide.drafts.draft import in_force
from threadline.capabilities.decide.drafts.repository import Proposal
from threadline.capabilities.decide.drafts.sections import entries_of, keys_by_hand, names_of
from threadline.capabilities.decide.drafts.uses import uses_of
from threadline.capabilities.foundation.definitions.applying import JOB_KIND
from threadline.capabilities.foundation.definitions.splicing import removed, spliced, value_of
from threadline.capabilities.foundation.definitions.versions import (
    CHANGES_MAX,
    Change,
    Version,
    find,
    newest,
    newest_number,
    puts,
    text_of,
    version,
)
from threadline.capabilities.foundation.jobs.operations import JobView
from threadline.capabilities.foundation.jobs.refreshing import begun
from threadline.kernel.documents import Stored, changed
from threadline.kernel.errors import Conflict, InvalidDefinition, NotFound
from threadline.kernel.operation import Context
from threadline.kernel.ports import Catalogue
from threadline.kernel.store import Batch, Delete, Put

_BY_A_PERSON = "`threadline definitions export` writes it into files, where it can be changed"


class InForce(NamedTuple):
    """What a change has come to."""

    number: int
    """Of the version in force."""
    job: JobView


def in_file(context: Context, section: str, name: str) -> str:
    """File and line of a definition that a file declares; empty: none does."""
    written = in_force(context.engine.catalogue).written(keys_by_hand(context.engine.catalogue, section, name))
    return "" if written is None else written.file


def refuse_in_file(section: str, name: str, place: str) -> None:
    """Raise `Conflict` where a file declares a definition."""
    if place:
        raise Conflict(
            f"{section} {name[:64]!r} is declared at {place}, and files keep what they declare",
            hint="Change it there, or take it out of that file first.",
            param="name",
        )


def put(
    context: Context, section: str, name: str, text: str, note: str, proposal: Callable[[], Stored[Proposal] | None]
) -> InForce:
    """Put a definition in force, and take away in the same commit what was proposed under its name."""
    place = in_file(context, section, name)

    def made(before: str) -> str:
        return with_pieces(context.engine.catalogue, before, [(section, name, text)])

    try:
        return _change(context, made, note, proposal)
    except InvalidDefinition:
        # A file may have been changed since it was read: only if it still has the name, that is what is wrong.
        refuse_in_file(section, name, place)
        raise


def with_pieces(catalogue: Catalogue, text: str, pieces: Iterable[tuple[str, str, str]]) -> str:
    """A text with definitions (section, name, what stands under it)."""
    for section, name, body in pieces:
        after = spliced(text, keys_by_hand(catalogue, section, name), body)
        if after is None:
            raise Conflict(f"{section} is written in a way that only a person can add to", hint=_BY_A_PERSON)
        text = after
    return text


def put_all(
    context: Context, pieces: Sequence[tuple[str, str, str]], note: str, writes: Sequence[Put | Delete] = ()
) -> InForce:
    """Put definitions (section, name, text) in force in one version; ``writes`` go into its commit."""

    def made(before: str) -> str:
        return with_pieces(context.engine.catalogue, before, pieces)

    return _change(context, made, note, writes=writes)


def take_away(context: Context, section: str, name: str, note: str, *, anyway: bool = False) -> InForce:
    """Delete a definition that is made by hand. Raises `Conflict` where another definition uses it, or unless
    ``anyway`` what stands in the store, with what that is."""
    refuse_in_file(section, name, in_file(context, section, name))
    keys = keys_by_hand(context.engine.catalogue, section, name)

    def made(before: str) -> str:
        after = without(before, section, name, keys)
        if not anyway and (users := uses_of(context, (section, name))):
            hint = "Change or stop what uses it first, or delete it with `anyway`."
            raise _still_used(section, name, users, hint)
        return after

    try:
        return _change(context, made, note)
    except InvalidDefinition as error:
        raise _still_used(section, name, str(error).split("\n"), "Change or delete what uses it first.") from None


def _still_used(section: str, name: str, users: Sequence[str], hint: str) -> Conflict:
    more = f", and {len(users) - USES_SHOWN} more" if len(users) > USES_SHOWN else ""
    message = f"{section} {name[:64]!r} is still used: {'; '.join(users[:USES_SHOWN])}{more}"
    return Conflict(message, hint=hint, param="name")


USES_SHOWN = 5
"""Of what uses a definition that somebody wants to delete."""


def without(text: str, section: str, name: str, keys: tuple[str, ...]) -> str:
    """A text without a definition. Raises `NotFound` where it has none of this name."""
    values = value_of(text)
    for key in keys:
        if not isinstance(values, dict) or key not in values:
            raise NotFound(f"{section} {name[:64]!r} is not made by hand")
        values = values[key]
    after = removed(text, keys)
    if after is None:
        raise Conflict(f"{section} is written in a way that only a person can take from", hint=_BY_A_PERSON)
    return after


def go_back(context: Context, number: int, seen: int, note: str) -> InForce:
    """Put the text of a former version in force, as a new one; 0 is the empty one before the first. ``seen``: the
    version that was looked at as the one in force; 0: any."""

    def made(before: str) -> str:
        return text_of(context.engine.store, number)

    if seen and seen != newest_number(context.engine.store):
        raise Conflict(f"version {seen} is in force no more; look again at what going back would change")
    if number:
        version(context.engine.store, number)
    return _change(context, made, note, restores=number)


def _change(
    context: Context,
    made: Callable[[str], str],
    note: str,
    proposal: Callable[[], Stored[Proposal] | None] = lambda: None,
    restores: int = 0,
    writes: Sequence[Put | Delete] = (),
) -> InForce:
    engine = context.engine

    def attempt() -> InForce | None:
        before, proposed = newest(engine.store), proposal()
        text = made(before.text)
        fingerprint = engine.maintenance.fingerprint_with(text)
        if text == before.text:
            if proposed is not None:
                repository.remove(context, proposed)
            return InForce(before.number, _begun(context, fingerprint))
        changes = differences(before.text, text, names_of(engine.catalogue))
        new = Version(
            number=before.number + 1,
            by=context.source,
            at=context.now,
            note=note,
            changes=tuple(changes[:CHANGES_MAX]),
            changed=len(changes),
            proposed_by="" if proposed is None or proposed.document.by == context.source else proposed.document.by,
            restores=restores,
        )
        settled = [] if proposed is None else [repository.removal(context, proposed)]
        return _committed(context, new, fingerprint, [*puts(new, text), *settled, *writes])

    done = changed("what is made by hand", attempt)
    engine.maintenance.reload()
    return done


def _committed(context: Context, new: Version, fingerprint: str, writes: list[Put | Delete]) -> InForce | None:
    """The writes and the job in one commit; None: another process was faster."""
    store = context.engine.store
    try:
        job = _begun(context, fingerprint, writes)
    except Conflict:
        return None
    there = find(store, new.number)
    if there is None:  # a job like it waits or runs already
        return InForce(new.number, job) if store.commit([Batch(writes=writes)])[0] is None else None
    return InForce(new.number, job) if (there.by, there.at) == (new.by, new.at) else None


def _begun(context: Context, fingerprint: str, writes: Sequence[Put | Delete] = ()) -> JobView:
    about = {"definitions": fingerprint}
    return begun(context, JOB_KIND, f"{JOB_KIND}.{fingerprint}", about, lambda id: writes)


# --- what is different ----------------------------------------------------------------------------


def differences(before: str, after: str, named: Collection[str]) -> list[Change]:
    """What one text has otherwise than another, definition by definition; ``named`` as in `entries_of`."""
    old, new = ({key: repr(value) for key, value in entries_of(value_of(text), named)} for text in (before, after))
    changes = []
    for section, name in sorted(old.keys() | new.keys()):
        was, now = old.get((section, name)), new.get((section, name))
        if was != now:
            change = "added" if was is None else "removed" if now is None else "changed"
            changes.append(Change(change, section, name))
    return changes
