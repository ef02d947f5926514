"""Everybody brought up to the definitions in force: states folded again, and what those ask for beside states."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from threadline.engine.folding.catalogue import Catalogue
from threadline.engine.maintenance import indexes, marks
from threadline.kernel.applied import Advanced, DefinitionChange
from threadline.kernel.errors import InvalidValue
from threadline.kernel.ids import short_hash
from threadline.kernel.ports import Ports
from threadline.kernel.store import Batch, Key, Put, Store
from threadline.kernel.typed import prepared

APPLIED = "applied"
"""Table of one item: the definitions that everybody was last brought up to."""
PEOPLE = marks.PEOPLE
NAMES_MAX = 1_000
"""Of a section of which each name is known."""
_KEY = Key(APPLIED, "definitions")

Contents = Mapping[str, Mapping[str, str]]
"""Section -> name -> a hash of what is declared."""


@prepared
class Applied(msgspec.Struct, array_like=True):
    """What was in force when everybody was up to date."""

    contents: dict[str, dict[str, str]]
    layout: str
    """See `Catalogue.layout`."""


def stale(store: Store, catalogue: Catalogue) -> tuple[str, ...]:
    """What is older than the definitions in force, in the order in which it is brought up to date."""
    steps = (PEOPLE, *(item.name for item in catalogue.refreshes))
    return tuple(step for step in steps if not marks.is_done(store, catalogue, step))


def advance(store: Store, catalogue: Catalogue, engine: Ports, cursor: str, limit: int) -> Advanced:
    """Bring some people up to date, from a cursor on ("": from the beginning), and answer from where to go on.

    It may be stopped after any call, or in the middle of one, and begun again: whoever is up to date is passed over.
    """
    step, after = _where(catalogue, cursor)
    if not step:
        pending = stale(store, catalogue)
        if not pending:
            _note_applied(store, catalogue)
            return Advanced("", 0, "")
        step = pending[0]
    if step == PEOPLE:
        people, after = indexes.catch_up_page(store, catalogue, after, limit)
        if not after:
            indexes.write_changed_rows(store, catalogue)
    else:
        refresh = next(item for item in catalogue.refreshes if item.name == step)
        people, after = refresh.page(engine, after, limit)
    if after:
        marks.note_share(store, catalogue, step, after)
        return Advanced(step, people, _cursor(catalogue, step, after))
    marks.mark(store, catalogue, step)
    left = [name for name in stale(store, catalogue) if name != step]
    if not left:
        _note_applied(store, catalogue)
    return Advanced(step, people, _cursor(catalogue, left[0], "") if left else "")


def refresh(catalogue: Catalogue, engine: Ports, cursor: str, limit: int) -> Advanced:
    """Do every `Refresh` again for some people, whether or not definitions have changed, from a cursor on."""
    refreshes = catalogue.refreshes
    number, _, after = cursor.partition(":")
    step = int(number or 0)
    if step >= len(refreshes):
        return Advanced("", 0, "")
    people, after = refreshes[step].page(engine, after, limit)
    following = f"{step}:{after}" if after else f"{step + 1}:" if step + 1 < len(refreshes) else ""
    return Advanced(refreshes[step].name, people, following)


def foretell(store: Store, catalogue: Catalogue, trial: Ports, cursor: str, limit: int) -> tuple[int, str]:
    """Bring some people up to date in a rehearsal, whose engine is ``trial``: as `advance`, but only by what may cause
    something; returns how many people, and where to go on."""
    steps = [item for item in catalogue.refreshes if item.foretold and item.name in stale(store, catalogue)]
    number, _, after = cursor.partition(":")
    step = int(number) if number.isdecimal() else 0
    if step >= len(steps):
        return 0, ""
    people, after = steps[step].page(trial, after, limit)
    return people, f"{step}:{after}" if after else f"{step + 1}:" if step + 1 < len(steps) else ""


def _cursor(catalogue: Catalogue, step: str, after: str) -> str:
    return f"{step}:{short_hash(marks.step_version(catalogue, step))[:8]}:{after}"


def _where(catalogue: Catalogue, cursor: str) -> tuple[str, str]:
    """The step of a cursor and after whom to go on; nothing for none, and for one of definitions that are in force no
    more: whoever was looked at by those is not up to date by these."""
    if not cursor:
        return "", ""
    step, colon, rest = cursor.partition(":")
    if not colon:
        raise InvalidValue(
            f"{cursor[:64]!r} is not a cursor; pass the `next` of the call before as it is", param="cursor"
        )
    if step not in (PEOPLE, *(item.name for item in catalogue.refreshes)):
        return "", ""
    after = rest.partition(":")[2]
    return (step, after) if cursor == _cursor(catalogue, step, after) else ("", "")


# --- what has changed -------------------------------------------------------------------------


def changes(store: Store, catalogue: Catalogue) -> Iterator[DefinitionChange]:
    """How the definitions in force differ from those that everybody was last brought up to."""
    before = applied(store)
    old: Contents = {} if before is None else before.contents
    new = contents_of(catalogue)
    for section in sorted(old.keys() | new.keys()):
        was, now = old.get(section, {}), new.get(section, {})
        if len({_is_whole(was), _is_whole(now)} - {None}) > 1:
            was, now = {"": "before"}, {"": "now"}  # one side has too many names to know each
        for name in sorted(was.keys() | now.keys()):
            if was.get(name) != now.get(name):
                change = "added" if name not in was else "removed" if name not in now else "changed"
                yield DefinitionChange(change, section, name)


def changed_projections(store: Store, catalogue: Catalogue) -> tuple[str, ...]:
    """The names of the projections whose states have to be folded again."""
    before = applied(store)
    old = set() if before is None else set(before.layout.split())
    return tuple(part.partition("=")[0] for part in catalogue.layout.split() if part not in old)


def applied(store: Store) -> Applied | None:
    """What was in force when everybody was last up to date; None: that is not known."""
    item = store.get([_KEY])[0]
    return None if item is None else msgspec.json.decode(item.value, type=Applied)


def _is_whole(section: Mapping[str, str]) -> bool | None:
    """Whether a section is known as a whole and not by its names; None if it is empty."""
    return "" in section if section else None


def contents_of(catalogue: Catalogue) -> Contents:
    """What the definitions of a catalogue declare; a section of very many names as a whole, for an item has a bound."""
    declared = {} if catalogue.definitions is None else catalogue.definitions.contents()
    whole = {section: {"": short_hash(repr(sorted(names.items())))} for section, names in declared.items()}
    return {section: names if len(names) <= NAMES_MAX else whole[section] for section, names in declared.items()}


def put_applied(catalogue: Catalogue) -> Put:
    """The item that says that everybody is up to these definitions."""
    noted = Applied({section: dict(names) for section, names in contents_of(catalogue).items()}, catalogue.layout)
    return Put(_KEY, msgspec.json.encode(noted, order="deterministic"))


def fingerprint(catalogue: Catalogue) -> str:
    """A hash of the definitions of a catalogue, the same in every process."""
    return short_hash(put_applied(catalogue).value.decode())


def _note_applied(store: Store, catalogue: Catalogue) -> None:
    put = put_applied(catalogue)
    item = store.get([put.key])[0]
    if item is None or item.value != put.value:
        store.commit([Batch(writes=[put])])
