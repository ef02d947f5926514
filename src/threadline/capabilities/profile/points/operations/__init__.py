"""What can be asked about points: balance, ledger, spending, corrections, and the tables in force."""

from __future__ import annotations

from threadline.kernel.operation import Group

POINTS_GROUP = Group("points", "Points that people earn and spend.")
