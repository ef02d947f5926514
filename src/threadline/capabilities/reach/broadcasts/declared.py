"""What the broadcasts capability puts into the catalogue beside its values: operations that know what is declared."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.segments.definition import read_segments
from threadline.capabilities.reach.broadcasts.operations import creating
from threadline.capabilities.reach.mail.definition import read_mail


def declare(definitions: Definitions) -> list[Any]:
    """The operations that check a broadcast against the declared segments, templates and senders."""
    return creating.operations(read_segments(definitions) or (), read_mail(definitions))
