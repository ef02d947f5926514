"""What stands in for the parts that an engine has not: the web, a search index, analytics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from threadline.kernel.analytics import Table
from threadline.kernel.errors import NotConfigured, Unavailable
from threadline.kernel.event_type import SeenTypes
from threadline.kernel.search import IndexProgress, IndexStatus, Matches, PeopleMatches, PeopleQuery, Query

if TYPE_CHECKING:
    pass


class Offline:
    """The web of an engine that has no way out."""

    def get(self, url: str, bytes_max: int) -> bytes:
        """Nothing is fetched."""
        raise Unavailable(f"{url[:200]} cannot be fetched: this engine has no way out")

    def texts(self, name: str) -> list[str]:
        """Nothing is asked."""
        raise Unavailable("DNS cannot be asked: this engine has no way out")


class NoIndex:
    """The search index of an engine that has none."""

    def search(self, query: Query) -> Matches:
        """Raise `NotConfigured`."""
        raise _no_index()

    def people(self, query: PeopleQuery) -> PeopleMatches:
        """Raise `NotConfigured`."""
        raise _no_index()

    def types(self, workspace: str) -> SeenTypes:
        """Raise `NotConfigured`."""
        raise _no_index()

    def catch_up(self, limit: int) -> IndexProgress:
        """Raise `NotConfigured`."""
        raise _no_index()

    def rebuild(self) -> None:
        """Raise `NotConfigured`."""
        raise _no_index()

    def status(self) -> IndexStatus:
        """Raise `NotConfigured`."""
        raise _no_index()

    def close(self) -> None:
        """There is nothing to release."""


class NoAnalytics:
    """The analytics of an engine that has none."""

    def query(self, workspace: str, sql: str, params: Mapping[str, Any]) -> Table:
        """Raise `NotConfigured`."""
        hint = "Set analytics_dir to a folder on a local disk, or lake; an embedded store has its folder beside it."
        raise NotConfigured("this store has nothing that answers questions about everybody", hint=hint)

    def close(self) -> None:
        """There is nothing to release."""


def _no_index() -> NotConfigured:
    hint = "Set search_index to a file on a local disk; an embedded store has its index beside it."
    return NotConfigured("this store has no search index", hint=hint)
