"""The CDNOW orders, told to an engine as the demo sends them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from threadline.surfaces.cli.demo.history import message, orders
from threadline.surfaces.python.embedded import Threadline
from threadline.wire import segment

CALL = 500


def messages() -> list[dict[str, Any]]:
    """Segment's message of every order, oldest first."""
    return [message(order) for order in orders()]


def tell(shop: Threadline, told: list[dict[str, Any]]) -> None:
    """Tell messages; all of them are accepted."""
    for start in range(0, len(told), CALL):
        decoded = segment.decode(
            json.dumps({"batch": told[start : start + CALL]}).encode(),
            kind=None,
            source="cdnow",
            workspace="default",
            received_at=shop.engine.clock(),
            fresh_key=lambda: pytest.fail("an order without a key"),
        )
        receipts = shop.record(decoded.results)  # type: ignore[arg-type]
        assert {receipt.status for receipt in receipts} == {"accepted"}
