"""A destination of webhooks: its request filled in without sending it, and a test; those that ship ready-made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from threadline.kernel.errors import InvalidValue, NotFound, ThreadlineError
from threadline.kernel.screen import Screen
from threadline.surfaces.console.asking import Asking


def _one(asking: Asking) -> Mapping[str, Any]:
    name, query = asking.path["name"], asking.query
    tried: dict[str, Any] = {}
    try:
        payload = _payload(query.get("payload", ""))
        asked = {"payload": payload, "event": query.get("event"), "person": query.get("person")}
        tried["preview"] = asking.ask("webhooks_preview", name=name, **{key: it for key, it in asked.items() if it})
    except ThreadlineError as error:
        tried |= {"problem": str(error), "hint": error.hint}
    payload = tried["preview"]["payload"] if "preview" in tried else {}
    return {**tried, "name": name, "payload": msgspec.json.format(msgspec.json.encode(payload)).decode()}


def _payload(text: str) -> Any:
    if not text.strip():
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidValue(f"the payload is no JSON: {error}", param="payload") from None


def _preset(asking: Asking) -> Mapping[str, Any]:
    name = asking.path["name"]
    it = next((preset for preset in asking.ask("webhooks_presets")["presets"] if preset["name"] == name), None)
    if it is None:
        raise NotFound(f"there is no ready-made destination {name[:64]!r}")
    return {"it": it}


SCREENS = (
    Screen(
        name="destination",
        path="/webhooks/destinations/{name}",
        title="Destination",
        template="destination.html",
        load=_one,
        operation="webhooks_preview",
        summary="A request as it would be sent, without sending it, and a test.",
        in_navigation=False,
        within="webhooks",
    ),
    Screen(
        name="preset",
        path="/webhooks/presets/{name}",
        title="Ready-made destination",
        template="preset.html",
        load=_preset,
        operation="webhooks_presets",
        summary="A destination that ships, with what it needs.",
        in_navigation=False,
        within="webhooks",
    ),
)
