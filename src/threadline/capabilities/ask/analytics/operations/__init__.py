"""What can be asked about everybody; each answer shows the SQL that it was made with."""

from __future__ import annotations

from threadline.kernel.operation import Group

ANALYTICS_GROUP = Group("analytics", "Trends, funnels, retention and other numbers about everybody.")
