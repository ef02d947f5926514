"""What an engine has of the world around it: its composition root makes it, and an engine is whole when it is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from threadline.engine.credentials import CACHE_SECONDS, Credential
from threadline.engine.public_address import PublicAddress
from threadline.engine.tracing import Tracing
from threadline.kernel.analytics import AnalyticsPort, Table
from threadline.kernel.confined import Confined, Unconfined
from threadline.kernel.errors import NotConfigured, Unavailable
from threadline.kernel.event import Event
from threadline.kernel.event_type import SeenTypes
from threadline.kernel.object_storage import Storage
from threadline.kernel.rejected import Reader
from threadline.kernel.search import IndexProgress, IndexStatus, Matches, Query, SearchIndex
from threadline.kernel.web import Web

if TYPE_CHECKING:
    from threadline.engine.engine import Engine


class Offline:
    """The web of an engine that has no way out."""

    def get(self, url: str, bytes_max: int) -> bytes:
        """Nothing is fetched."""
        raise Unavailable(f"{url[:200]} cannot be fetched: this engine has no way out")


class NoIndex:
    """The search index of an engine that has none."""

    def search(self, query: Query) -> Matches:
        """Raise `NotConfigured`."""
        raise _no_index()

    def types(self, workspace: str) -> SeenTypes:
        """Raise `Unavailable`."""
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


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The parts and choices of an engine that come from outside. By default there are none: it works alone."""

    web: Web = field(default_factory=Offline)
    confined: Confined = field(default_factory=Unconfined)
    public_address: PublicAddress | None = None
    """None: unknown, until a server says its own."""
    exports: Callable[[], Storage] | None = None
    search: Callable[[Engine], SearchIndex] = lambda engine: NoIndex()
    """Makes the index of an engine whose other parts are there."""
    analytics: Callable[[Engine], AnalyticsPort] = lambda engine: NoAnalytics()
    readers: Mapping[str, Reader] = field(default_factory=dict)
    """Form of a rejected payload -> how to read it again; only the composition root knows the wire formats."""
    forms: Mapping[str, Callable[[Event], dict[str, Any]]] = field(default_factory=dict)
    """Member of `Event.wire` -> how the message that an event came in is written as it came."""
    fixed_credentials: Sequence[Credential] = ()
    """Those of the settings, which are never stored."""
    credential_cache_seconds: float = CACHE_SECONDS
    rules_refresh_seconds: float | None = 0.0
    """See `SharedValues.refresh_seconds`."""
    leaderboard_refresh_seconds: float | None = None
    """See `Ranks.refresh_seconds`."""
    activation_changed_max: float | None = None
    """See `Simulations.activation_changed_max`."""
    tracing: Tracing | None = None
    recorded_until: int = 0
    """The instant right after what an engine has recorded in whose place this one is put."""


ALONE = Surroundings()
