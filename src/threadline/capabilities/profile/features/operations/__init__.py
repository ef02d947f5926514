"""What can be asked about features: a person's vector, training sets, the highest values, the definitions."""

from __future__ import annotations

from threadline.kernel.operation import Group

FEATURES_GROUP = Group("features", "Values about people, such as what they have spent.")
