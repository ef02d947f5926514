"""What the points capability puts into the catalogue, made of what the files of definitions declare."""

from __future__ import annotations

from typing import Any

from threadline.capabilities.foundation.conditions.values_read import traits_read
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.points.definition import read_points
from threadline.capabilities.profile.points.operations.tables import history, tables
from threadline.capabilities.profile.points.policy import points_policy
from threadline.capabilities.profile.points.projection import points_projection
from threadline.kernel.calendar import Calendar
from threadline.kernel.reading import Readings


def declare(definitions: Definitions) -> list[Any]:
    """The projection, the policy and the operations of what is declared; nothing for ``false``."""
    points = read_points(definitions)
    if points is None:
        return []
    read = Readings("points", traits_read(multiplier.path for multiplier in points.multipliers))
    asked = (history(Calendar(points.timezone)), tables(points))
    return [points_projection(points), points_policy(points), read, *asked]
