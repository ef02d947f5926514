"""Points: a ledger in the thread. Events earn by a table, people spend, operators adjust, and old points expire.

What it promises: every line of the ledger is an event with a cause, and a cause earns once, whatever is told twice. A
line is decided when its cause arrives and never changed afterwards, by late events or by new tables. Lifetime earned
and spendable balance are different numbers, and both are folded from the lines in any order. A spend is decided inside
the commit that records it, so that it never overdraws, whoever else spends at the same moment.
"""

from threadline.capabilities.profile.points.definition import Multiplier, Points, Rule, Table, read_points
from threadline.capabilities.profile.points.policy import points_policy
from threadline.capabilities.profile.points.projection import points_projection
from threadline.kernel.calendar import Calendar
from threadline.kernel.capability import Capability

CAPABILITY = Capability("points", __name__, needs=frozenset({"streaks"}))

__all__ = [
    "CAPABILITY",
    "Calendar",
    "Multiplier",
    "Points",
    "Rule",
    "Table",
    "points_policy",
    "points_projection",
    "read_points",
]
