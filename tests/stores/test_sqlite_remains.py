"""Nothing of what was erased, replaced or deleted is left in any file of an SQLite store once it is purged."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import apsw
import pytest

from tests.stores.sqlite_stage import events_of  # noqa: F401
from threadline.kernel.errors import StoreBusy
from threadline.kernel.store import Batch, Delete, Item, Key, LogEntry, Put, Store, feed_pages, is_erased, scan_pages
from threadline.stores.sqlite import driver, free_space
from threadline.stores.sqlite.store import SqliteStore
from threadline.testing.store_cases import THREAD, at_once, entry, record
