"""The bodies of the addresses for actions: what they may hold, and the event that an action becomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.profile.interests.actions import SEPARATOR
from threadline.capabilities.profile.interests.attribution import FIELDS
from threadline.capabilities.profile.interests.definition import (
    ACTION_VALUE_LENGTH_MAX,
    APPLICATION_LENGTH_MAX,
    SCOPE_LENGTH_MAX,
    TOPIC_LENGTH_MAX,
)
from threadline.capabilities.profile.interests.events import ACTION
from threadline.kernel.errors import InvalidValue
from threadline.kernel.event import Event, Identifier
from threadline.kernel.ids import short_hash
from threadline.kernel.time import parse_time
from threadline.kernel.typed import converted, prepared
from threadline.wire.message import place_in_time

SOURCE = "appaction"
"""The source of what comes in here; the idempotency keys of its events name actor and action."""
ACTION_ID_LENGTH_MAX = 64

_UTM = {f"utm_{'campaign' if field == 'name' else field}": field for field in FIELDS}


class AppActionScope(msgspec.Struct, kw_only=True):
    """What the action was about, such as an article or a category."""

    topic: Annotated[str, Meta(description="Also read as `scopeTopic`.", max_length=SCOPE_LENGTH_MAX)] = ""
    value: Annotated[str, Meta(description="Also read as `scopeValue`.", max_length=ACTION_VALUE_LENGTH_MAX)] | int = ""
    """A number counts as its text: that is what databases call their articles."""


@prepared
class AppAction(msgspec.Struct, kw_only=True, rename="camel"):
    """One action, with any number of scopes under its one id."""

    topic: Annotated[str, Meta(description="What kind of thing was done.", min_length=1, max_length=TOPIC_LENGTH_MAX)]
    scopes: list[AppActionScope] = []
    application_id: Annotated[
        str, Meta(description="Where it was done; anonymous actions need it.", max_length=APPLICATION_LENGTH_MAX)
    ] = ""
    action_id: Annotated[
        str,
        Meta(
            description="Names the action: the same again is a retry and changes nothing. Made here if it is absent.",
            max_length=ACTION_ID_LENGTH_MAX,
        ),
    ] = ""
    anonymous_id: Annotated[
        str,
        Meta(
            description="The visitor's device. With a user's token it joins what was done before signing in.",
            max_length=100,
        ),
    ] = ""
    occurred_at: (
        Annotated[
            str,
            Meta(
                description="When, RFC 3339; without it now.",
                max_length=64,
                extra_json_schema={"anyOf": [{"format": "date-time"}, {"maxLength": 0}]},
            ),
        ]
        | None
    ) = None
    utm: Annotated[
        dict[str, str], Meta(description="The campaign: source, medium, name (or campaign), term, content, id.")
    ] = {}


@prepared
class TopicQuestion(msgspec.Struct, kw_only=True, rename="camel"):
    """Which values of a user are asked for, the one of most interest first."""

    topic: Annotated[str, Meta(min_length=1, max_length=TOPIC_LENGTH_MAX)]
    scope_topic: Annotated[str, Meta(description="Empty: values of every scope.", max_length=SCOPE_LENGTH_MAX)] = ""
    application_id: Annotated[
        str, Meta(description="Empty: actions of every application.", max_length=APPLICATION_LENGTH_MAX)
    ] = ""
    include_weights: Annotated[
        bool, Meta(description="True: answer with an object for each value, its weight beside it.")
    ] = False
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 1_000


def read(body: Mapping[str, Any], form: type[Any]) -> Any:
    """A body as one of the forms. Names count without regard to case, and those that are not known are passed over.

    Raises `InvalidValue` that names the field.
    """
    names = {name.lower(): name for name in (field.encode_name for field in msgspec.structs.fields(form))}
    known = {names[name.lower()]: value for name, value in body.items() if name.lower() in names and value is not None}
    if "scopes" in known and isinstance(known["scopes"], list):
        known["scopes"] = [_scope(scope) for scope in known["scopes"]]
    try:
        return converted(known, form)
    except msgspec.ValidationError as error:
        raise InvalidValue(str(error)) from None


def _scope(given: object) -> object:
    if not isinstance(given, dict):
        return given
    lowered = {name.lower(): value for name, value in given.items() if value is not None}
    scope = {
        name: lowered.get(name, lowered.get(f"scope{name}"))
        for name in ("topic", "value")
        if name in lowered or f"scope{name}" in lowered
    }
    if type(scope.get("value")) is int:
        scope["value"] = str(scope["value"])
    return scope


def event_of(
    action: AppAction, identifiers: Sequence[Identifier], *, workspace: str, received_at: int, wire: dict[str, Any]
) -> Event:
    """The one event of an action. ``wire`` is what the request adds, such as the address it came from.

    Raises `InvalidValue` for what no interest can be read from.
    """
    topic = action.topic.strip()
    scopes = [(scope.topic, str(scope.value)) for scope in action.scopes]
    texts = [topic, action.application_id, *(text for scope in scopes for text in scope)]
    if not topic or any(SEPARATOR in text for text in texts):
        raise InvalidValue("`topic` is blank, or a text holds the control character U+001F", param="topic")
    properties: dict[str, Any] = {
        "topic": topic,
        "scopes": [{"topic": name, "value": value} for name, value in scopes],
        "action_id": action.action_id,
    }
    if action.application_id:
        properties["application_id"] = action.application_id
    campaign = _campaign(dict(scopes), action.utm)
    occurred_at = parse_time(action.occurred_at) if action.occurred_at else None
    at, marks = place_in_time(occurred_at, None, received_at)
    actor = identifiers[0]
    return Event(
        type=ACTION,
        identifiers=tuple(identifiers),
        occurred_at=at,
        key=f"{short_hash(actor.kind, actor.value)}/{action.action_id}",
        source=SOURCE,
        source_type="external",
        workspace=workspace,
        properties=properties,
        context={"campaign": campaign} if campaign else {},
        received_at=received_at,
        sent_time=occurred_at,
        marks=marks,
        wire={SOURCE: wire},
    )


def _campaign(scopes: Mapping[str, str], utm: Mapping[str, str]) -> dict[str, str]:
    """The campaign of an action: what ``utm`` tells, else scopes that are named as UTM parameters are."""
    by_name = {name.lower(): value for name, value in scopes.items()}
    for name, value in utm.items():
        name = name.lower()
        by_name[name if name.startswith("utm_") else f"utm_{name}"] = value
    by_name.setdefault("utm_campaign", by_name.get("utm_name", ""))
    return {field: by_name[name] for name, field in _UTM.items() if by_name.get(name)}
