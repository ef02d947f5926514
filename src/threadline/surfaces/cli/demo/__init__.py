"""``threadline demo``: the first impression. A real server, a shop's real history, and what is known afterwards."""

from __future__ import annotations

from threadline.surfaces.cli.demo.program import command

__all__ = ["command"]
