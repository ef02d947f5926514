"""Erasures of another copy of a store, done again in this one: a backup that was restored, or a file put back."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

import msgspec

from threadline.engine.erasure.certificates import add_keys, certificates, read, taken_over, thread_pseudonym
from threadline.engine.erasure.certificates_file import Entry, LedgerFile
from threadline.engine.erasure.erased_ids import note_erased
from threadline.engine.erasure.removal import Page, erased_events, page_put, remaining_puts
from threadline.engine.erasure.saga import Erasures
from threadline.engine.erasure.steps import EngineParts
from threadline.engine.erasure.unfinished import stored
from threadline.engine.folding.person import THREAD
from threadline.kernel.erasure import ERASURE, Certificate
from threadline.kernel.limits import BATCH_WRITES_MAX
from threadline.kernel.pseudonym import pseudonym_keys
from threadline.kernel.store import Batch, Key, Store, erased, scan_pages

PAGE_IDS = BATCH_WRITES_MAX // 2
"""Events of one commit; each counts as two writes."""

log = logging.getLogger("threadline.erasure")


def entries_of(store: Store) -> tuple[Sequence[bytes], list[Entry]]:
    """The keys of pseudonyms and the erasures that a store has."""
    entries = []
    for content in certificates(store):
        certificate = read(content)
        entries.append(Entry(content, erased_events(store, certificate.workspace, certificate.erasure).ids))
    return pseudonym_keys(store), entries


def reconcile(engine: EngineParts, erasures: Erasures, file: LedgerFile) -> int:
    """Do again what the ledger beside a store has and the store has not, and the other way; how many erasures were
    done again."""
    keys, entries = file.read()
    applied = apply(engine, erasures, keys, entries)
    if entries or engine.store.scan(ERASURE, limit=1):
        file.add(*entries_of(engine.store))
    return applied


def apply(
    engine: EngineParts,
    erasures: Erasures,
    keys: Iterable[bytes],
    entries: Sequence[Entry],
    progress: Callable[[str], None] = lambda what: None,
) -> int:
    """Do again those of these erasures that this store has not; how many that were."""
    store = engine.store
    items = store.get([Key(ERASURE, *entry.name) for entry in entries])
    missing = [entry for entry, item in zip(entries, items, strict=True) if item is None]
    if not missing:
        return 0
    add_keys(store, list(keys))
    names = {entry.name for entry in missing}
    for workspace, id in erasures.unfinished():
        # What is sealed is found by no thread below. Of what the ledger has, a second certificate must not be made.
        if (workspace, id) in names:
            _without_certificate(store, workspace, id)
        erasures.run(workspace, id)
    for index, people in _people(store, missing).items():
        certificate = read(missing[index].certificate)
        for person in _split_off(engine, certificate, people):
            erasures.erase_again(person, certificate)
    for entry in missing:
        _take_over(store, entry)
        progress(entry.name[1])
    store.purge()
    log.warning("%d erasures of another copy of this store were done again", len(missing))
    return len(missing)


def _without_certificate(store: Store, workspace: str, id: str) -> None:
    """Let an erasure that this copy has under way end without a certificate of its own."""
    at = stored(store, workspace, id)
    if at is not None:
        store.commit([Batch(writes=[at.changed(msgspec.structs.replace(at.record, again=id))])])


def _people(store: Store, missing: Sequence[Entry]) -> dict[int, dict[str, set[str]]]:
    """By place of an erasure: the people who have its threads here, and which of them."""
    keys = pseudonym_keys(store)
    indexes = {thread: index for index, entry in enumerate(missing) for thread in read(entry.certificate).threads}
    people: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for item in scan_pages(store, THREAD):
        thread = item.key.partition
        for key in keys:
            index = indexes.get(thread_pseudonym(key, thread))
            if index is not None:
                people[index][item.value.decode()].add(thread)
    return people


def _split_off(engine: EngineParts, certificate: Certificate, people: dict[str, set[str]]) -> list[str]:
    """The ids of people who have these threads and no others; whoever has others as well is split before."""
    ids = []
    for threads in people.values():
        person = engine.reader.by_thread(next(iter(threads)))
        if person is None:
            continue  # sealed already
        if person.heads.keys() <= threads:
            ids.append(person.id)
            continue
        # It was split off before the erasure, and this copy is older than the split.
        names = [str(person.identifiers[thread]) for thread in sorted(threads)]
        request, workspace = f"erasure/{certificate.erasure}/{person.id}", certificate.workspace
        both = engine.identity.split(workspace, person.id, names, request=request, reason="erasure", by="threadline")
        ids += [id for id in both if engine.reader.person(workspace, id).heads.keys() <= threads]
    return ids


def _take_over(store: Store, entry: Entry) -> None:
    """Have the certificate, and every id of its events: those that came after this copy was made as well, so that they
    are duplicates if they are sent again."""
    certificate = read(entry.certificate)
    for start in range(0, len(entry.ids), PAGE_IDS):
        ids = entry.ids[start : start + PAGE_IDS]
        note_erased(store, ids)
        known = store.seen(ids)
        store.commit([Batch([erased(id) for id in ids if id not in known])])
        store.commit([Batch(writes=[page_put(certificate.workspace, certificate.erasure, Page(list(ids), [], []))])])
    store.commit([Batch(writes=[put]) for put in remaining_puts(certificate.remaining)])
    store.commit([Batch(writes=taken_over(store, entry.certificate))])


def keep_beside(engine: EngineParts, erasures: Erasures, file: LedgerFile) -> None:
    """Have every certificate in a file beside the store as well; see `reconcile` for what is done before."""

    def add(certificate: bytes) -> None:
        parsed = read(certificate)
        entry = Entry(certificate, erased_events(engine.store, parsed.workspace, parsed.erasure).ids)
        file.add(pseudonym_keys(engine.store), [entry])

    erasures.steps.certified = add
    erasures.done_again = reconcile(engine, erasures, file)
