"""What can be asked about alerts: those of a person, and what operators write."""

from __future__ import annotations

from threadline.kernel.operation import Group

ALERTS_GROUP = Group("alerts", "Messages that people see inside an application.")
