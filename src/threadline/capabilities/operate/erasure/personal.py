"""What the tables of erasures have of people: nothing that names anybody once an erasure is done."""

from __future__ import annotations

from threadline.kernel.erasure import ERASED_LOG, ERASURE, ERASURE_IDS, ERASURE_OPEN, EXPIRING, LEDGER_HEAD
from threadline.kernel.personal import StoreTable
from threadline.kernel.pseudonym import PSEUDONYM_KEY

_HASHES = "salted hashes of people who were erased"
LEDGER_TABLE = StoreTable(ERASURE, "nobody", why=_HASHES)
HEAD_TABLE = StoreTable(LEDGER_HEAD, "nobody", why="the end of the ledger of erasures")
IDS_TABLE = StoreTable(ERASURE_IDS, "nobody", why="ids of erased events, which are hashes and stay in the log")
LOG_TABLE = StoreTable(ERASED_LOG, "nobody", why="the same ids, for the copies outside the store")
OPEN_TABLE = StoreTable(ERASURE_OPEN, "nobody", why="erasures under way: whom they are about is nobody to be shown")
KEY_TABLE = StoreTable(PSEUDONYM_KEY, "nobody", why="the keys of the hashes")
EXPIRING_TABLE = StoreTable(EXPIRING, "nobody", why="for a moment the ids of people who are folded without old events")
