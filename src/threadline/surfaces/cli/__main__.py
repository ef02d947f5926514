"""``python -m threadline.surfaces.cli``."""

from __future__ import annotations

from threadline.surfaces.cli import main

main()
