"""What the broadcasts capability puts into the catalogue beside its values: operations that know what is declared."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.broadcasts.operations import creating
from threadline.capabilities.definitions import Definitions
from threadline.capabilities.mail.definition import read_mail
from threadline.capabilities.segments.definition import read_segments


def declare(definitions: Definitions) -> list[Any]:
    """The operations that check a broadcast against the declared segments, templates and senders."""
    return creating.operations(read_segments(definitions) or (), read_mail(definitions))
