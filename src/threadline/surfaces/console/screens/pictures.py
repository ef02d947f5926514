"""Pictures of mails: uploaded here, listed with what uses each, and deleted where nothing does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.kernel.limits import PICTURE_BYTES_MAX, PICTURE_PIXELS_MAX
from threadline.kernel.screen import Screen
from threadline.surfaces.console.asking import Asking


def _load(asking: Asking) -> Mapping[str, Any]:
    return {
        **asking.ask("mail_pictures"),
        "megabytes": PICTURE_BYTES_MAX // 1_048_576,
        "pixels": PICTURE_PIXELS_MAX,
    }


SCREENS = (
    Screen(
        name="pictures",
        path="/mail-pictures",
        title="Pictures",
        template="pictures.html",
        load=_load,
        operation="mail_pictures",
        summary="Pictures that mails show, served from here.",
        in_navigation=False,
        within="templates",
    ),
)
