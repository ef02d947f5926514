"""What can be asked about memory: facts, variables, lineage, derivations, and corrections."""

from __future__ import annotations

from threadline.kernel.operation import Group

MEMORY_GROUP = Group("memory", "Facts about a person, and the events behind them.")
