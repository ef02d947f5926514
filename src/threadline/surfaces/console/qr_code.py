"""QR codes as the path of an SVG, which a template draws in the colours of the page."""

from __future__ import annotations

import segno

QUIET = 4
"""The light border that a camera needs, in modules."""


def qr_path(text: str) -> tuple[int, str]:
    """The side of a QR code with its border, and the dark modules as the ``d`` of a path: a run of them is one box."""
    rows = segno.make(text, error="m", micro=False).matrix
    side = len(rows) + 2 * QUIET
    return side, "".join(box for y, row in enumerate(rows) for box in _boxes(y + QUIET, row))


def _boxes(y: int, row: bytearray) -> list[str]:
    boxes, begin = [], None
    for x, dark in enumerate([*row, 0]):
        if dark and begin is None:
            begin = x
        elif not dark and begin is not None:
            boxes.append(f"M{begin + QUIET} {y}h{x - begin}v1h-{x - begin}z")
            begin = None
    return boxes
