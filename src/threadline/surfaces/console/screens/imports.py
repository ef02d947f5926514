"""Import: a file is uploaded, its columns are mapped, all of it is tried, and then it is recorded as history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.kernel.limits import UPLOAD_BYTES_MAX
from threadline.kernel.screen import Part, Screen
from threadline.kernel.time import format_time
from threadline.surfaces.console import import_form
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.event_types import suggested

DELIMITERS = {"": "comma", ";": "semicolon ;", "\t": "tab", "|": "bar |"}


def _load(asking: Asking) -> Mapping[str, Any]:
    uploads = [upload.shown() for upload in asking.uploads.listed(asking.session.workspace)]
    return {"uploads": uploads, "megabytes": UPLOAD_BYTES_MAX // 1_048_576}


def _one(asking: Asking) -> Mapping[str, Any]:
    upload = asking.uploads.get(asking.session.workspace, asking.path["id"])
    columns = upload.columns()
    calls = len(asking.calls)
    types = suggested(asking.ask_or({"event_types": []}, "catalogue")["event_types"])
    del asking.calls[calls:]  # they fill the form
    return {
        "it": upload.shown(),
        "columns": [column._asdict() for column in columns],
        "values": upload.fields or import_form.begun(columns, f"{format_time(asking.now)[:19]}Z"),
        "uses": import_form.USES,
        "readings": import_form.READ_AS,
        "formats": import_form.FORMATS,
        "delimiters": DELIMITERS,
        "types": types,
    }


def _state(asking: Asking) -> Mapping[str, Any]:
    return {"it": asking.uploads.get(asking.session.workspace, asking.path["id"]).shown()}


SCREENS = (
    Screen(
        name="imports",
        path="/imports",
        title="Import",
        template="imports.html",
        load=_load,
        operation="rejected_resubmit",
        summary="People and past events from a file. Nobody gets a mail because of it.",
        area="Operations",
        order=62,
    ),
    Screen(
        name="import",
        path="/imports/{id}",
        title="Import",
        template="import.html",
        load=_one,
        operation="rejected_resubmit",
        in_navigation=False,
        within="imports",
        parts={"state": Part("import_state.html", _state)},
    ),
)
