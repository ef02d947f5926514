"""When features are published, of whom, which and where to, read from the section ``feature_updates``."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.declaring import (
    Given,
    Single,
    duration,
    listed,
    parsed,
    struct,
    text,
)
from threadline.capabilities.foundation.webhooks.definition import DESTINATIONS
from threadline.kernel.limits import FEATURES_MAX
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import DAY, HOUR, MINUTE

_TIME = re.compile("([01][0-9]|2[0-3]):([0-5][0-9])")


def _time_of_day(written: str) -> int | None:
    match = _TIME.fullmatch(written)
    return None if match is None else int(match[1]) * HOUR + int(match[2]) * MINUTE


class FeatureUpdates(msgspec.Struct, frozen=True, kw_only=True):
    """What is published once a day."""

    at: Annotated[
        int,
        parsed(_time_of_day, 'a time of the day in UTC, such as "06:00"', pattern=f"^{_TIME.pattern}$"),
        Meta(description="The time of the day, in UTC."),
    ] = 6 * HOUR
    active_within: Annotated[
        int, duration(DAY, example="90d"), Meta(description="Only of people who did something within this time.")
    ] = 90 * DAY
    features: Annotated[
        tuple[str, ...], listed(text(), 1, FEATURES_MAX), Meta(description="Which; all where it is absent.")
    ] = ()
    destination: Annotated[str, Meta(description="A declared destination, for a webhook as well.")] = ""
    place: Given = ""
    destination_place: Given = ""


SECTION = Single("feature_updates", struct(FeatureUpdates))
FEATURE_UPDATES = SECTION.declared


def read_feature_updates(definitions: Definitions) -> FeatureUpdates | None:
    """What is declared; None if no file has the section. Problems are noted in the documents."""
    if not definitions.section(SECTION.section):
        return None
    updates = SECTION.read(definitions, FeatureUpdates())
    known = DESTINATIONS.read(definitions).places
    if updates.destination and updates.destination not in known:
        nearest = suggestion(updates.destination, known) if known else "none is declared"
        text = f"{updates.destination!r} is no declared destination; {nearest}"
        definitions.problems.append(f"{updates.destination_place}: `feature_updates`: `destination`: {text}")
    return updates
