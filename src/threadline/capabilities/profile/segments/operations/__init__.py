"""What can be asked about segments: of one person and why, their members, the definitions."""

from __future__ import annotations

from threadline.kernel.operation import Group

SEGMENTS_GROUP = Group("segments", "Who belongs to which segment, and why.")
