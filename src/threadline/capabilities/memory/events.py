"""The event types that state, retract and restore facts."""

from __future__ import annotations

from threadline.kernel.lasting import Lasting, for_life

FACT_REMEMBERED = "fact_remembered"
"""By the person. Properties: ``type``, ``key``, ``value``, and optionally ``expires_at`` and ``derived_from``."""
FACT_COMPUTED = "fact_computed"
"""A system computed it; properties as above and ``confidence``."""
FACT_RETRACTED = "fact_retracted"
"""What was known by then under ``type`` and ``key`` counts no more; ``reason`` says why."""
FACT_RESTORED = "fact_restored"
"""A retraction counts no more: that under ``type`` and ``key`` with the id ``retraction``, of ``retracted_at``,
which is in microseconds."""

LASTING = Lasting(
    "memory",
    for_life((FACT_REMEMBERED, FACT_COMPUTED, FACT_RESTORED), "a fact is made of it")
    | {FACT_RETRACTED: "a fact that was taken back would be there again"},
)
