"""Requests of destinations: as they would be sent, as a test, and those that ship ready-made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import EventId, PersonRef
from threadline.capabilities.foundation.events.requests import place_and_key, wish
from threadline.capabilities.foundation.webhooks.definition import JSON, Destination
from threadline.capabilities.foundation.webhooks.events import WEBHOOK_TEST_REQUESTED
from threadline.capabilities.foundation.webhooks.login import secret_in
from threadline.capabilities.foundation.webhooks.operations import WEBHOOKS_GROUP
from threadline.capabilities.foundation.webhooks.operations.destinations import Name
from threadline.capabilities.foundation.webhooks.policy import TEST
from threadline.capabilities.foundation.webhooks.preparation import filling_of, requests_of, sent_of
from threadline.capabilities.foundation.webhooks.presets import Preset
from threadline.capabilities.foundation.webhooks.presets import presets as shipped
from threadline.kernel.disclosure import FREE, NOT_PERSONAL, SENTENCE, not_personal
from threadline.kernel.errors import InvalidValue, NotFound
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Choice, Context, NoParams, Operation, Params, operation, shaped_operation
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import format_time
from threadline.kernel.webhook import HIDDEN, standard_body

PREVIEW = "0" * 32
"""Stands for the id of a call, and of a person where none is named."""
_CALL = "call_webhook"
_Payload = Annotated[dict[str, Any] | None, Meta(description="As in an action.")]


class RequestPreviewParams(Params, kw_only=True):
    """Which destination, and what the call is about."""

    name: Name
    payload: _Payload = None
    event: Annotated[EventId | None, Meta(description="The call that rules would make about it.")] = None
    person: Annotated[PersonRef | None, Meta(description="Whom a `payload` is about.")] = None


class RequestPreview(msgspec.Struct, kw_only=True):
    """A request as it would be sent; nothing is."""

    method: Annotated[str, NOT_PERSONAL]
    url: Annotated[str, Meta(description="Secrets are hidden.")]
    headers: dict[str, str]
    body: Annotated[str, FREE]
    payload: Annotated[dict[str, Any], FREE]
    withheld: Annotated[list[str], Meta(description="Members that may not go there.")]
    problem: Annotated[str, Meta(description="Why it could not be made; empty: it can."), SENTENCE]


class RequestTestParams(Params, kw_only=True):
    """Which destination, and what the test brings."""

    name: Name
    person: Annotated[PersonRef, Meta(description="Whose events have the outcome.")]
    payload: _Payload = None


class RequestTest(msgspec.Struct, kw_only=True):
    """The test waits in the outbox."""

    destination: str


@key_fields("name", "title", "needs")
@not_personal
class ReadyMade(msgspec.Struct, kw_only=True):
    """A destination that ships, tried against stand-ins."""

    name: str
    title: str
    description: str
    needs: Annotated[list[str], Meta(description="Members of the payload.")]
    variables: Annotated[dict[str, str], Meta(description="What each holds.")]
    text: Annotated[str, Meta(description="Its definition.")]


class ReadyMadeList(msgspec.Struct, kw_only=True):
    """Every destination that ships."""

    presets: list[ReadyMade]


Destinations = Mapping[str, Destination]


def _named(destinations: Destinations, name: str) -> Destination:
    if name not in destinations:
        raise NotFound(f"there is no destination {name[:64]!r}; {suggestion(name, destinations)}", param="name")
    return destinations[name]


@shaped_operation(
    "POST /v1/webhooks/destinations/{name}/preview",
    WEBHOOKS_GROUP,
    scope="admin",
    audited=False,
    choices=(Choice(("payload", "event")), Choice(("event", "person"))),
    example=RequestPreviewParams(name="crm", payload={"order": "A-7", "total": 1200}),
)
def preview(destinations: Destinations, context: Context, params: RequestPreviewParams) -> RequestPreview:
    """Fill in the request of a destination, and send nothing."""
    destination = _named(destinations, params.name)
    person = PREVIEW
    if params.person is not None:
        person = context.engine.reader.person(context.workspace, params.person).id
    data: dict[str, Any] = {"rule": "example", "version": 1, "at": format_time(context.now)}
    if params.event is not None:
        recorded = context.engine.log.event(context.workspace, params.event)
        person = context.engine.reader.person_of(recorded).id
        data = {**data, "at": format_time(recorded.event.occurred_at), **_decided(context, params.name, params.event)}
    else:
        data["payload"] = params.payload if params.payload is not None else _made_up(destination)
    return _preview(context, destination, data, person)


def _decided(context: Context, name: str, event: str) -> dict[str, Any]:
    """What the rules in force would ask a destination for because of an event. Raises `NotFound` for nothing."""
    operations = context.engine.catalogue.operations
    evaluate = next((known for known in operations if known.name == "decisions_evaluate"), None)
    decisions = evaluate.run(context, evaluate.params(event_id=event)).decisions if evaluate is not None else ()
    for decision in decisions:
        for action in decision.wished:
            call = action.get(_CALL)
            if call is not None and call.get("destination") == name:
                return {"rule": decision.rule, "version": decision.version, "payload": call.get("payload")}
    raise NotFound(
        f"no rule in force calls {name!r} because of this event", hint="Give a `payload` instead.", param="event"
    )


def _made_up(destination: Destination) -> dict[str, Any]:
    """A payload of all that templates ask for: a member `email` is the text "[email]"."""
    return {name: f"[{name}]" for name in sorted(destination.payload or destination.read_of_payload)}


def _preview(context: Context, destination: Destination, data: dict[str, Any], person: str) -> RequestPreview:
    body, withheld = standard_body(data, destination.payload)
    (filled,) = requests_of(context.engine.confined, [filling_of(destination, data, PREVIEW, person)])
    made, problem = sent_of(filled), filled.failure
    if made["body"] is None:
        made["body"] = body.decode() if destination.has_body and not problem else ""
    payload = data.get("payload")
    return RequestPreview(
        method=destination.method,
        url="" if problem else _shown_url(destination, made["url"]),
        headers={} if problem else {**_headers(destination), **made["headers"]},
        body=made["body"],
        payload=payload if isinstance(payload, dict) else {} if payload is None else {"payload": payload},
        withheld=withheld,
        problem=problem,
    )


def _shown_url(destination: Destination, url: str) -> str:
    shown = f"{HIDDEN}{url}" if secret_in(destination.url) else url
    for name in (name for name, value in destination.query.items() if secret_in(value)):
        shown += f"{'&' if '?' in shown else '?'}{name}={HIDDEN}"
    return shown


def _headers(destination: Destination) -> dict[str, str]:
    """The headers that are the same for every call, and those that nobody sees."""
    headers = {"Content-Type": JSON} if destination.has_body else {}
    headers |= {name: HIDDEN for name, value in destination.headers.items() if secret_in(value)}
    if destination.login is not None:
        headers[destination.login.header] = HIDDEN
    return headers | ({"webhook-signature": HIDDEN} if destination.secrets else {})


@shaped_operation(
    "POST /v1/webhooks/destinations/{name}/test",
    WEBHOOKS_GROUP,
    done=("Sent a test to {name}",),
    scope="admin",
    example=RequestTestParams(name="crm", person="user_id:42", payload={"order": "A-7"}),
)
def test(destinations: Destinations, context: Context, params: RequestTestParams) -> RequestTest:
    """Send a destination one call that is marked as a test."""
    destination = _named(destinations, params.name)
    person = context.engine.reader.person(context.workspace, params.person)
    at = str(context.engine.recorder.clock())
    identifier, key = place_and_key(context, person, TEST, params.name, at, named="")
    payload = params.payload if params.payload is not None else _made_up(destination)
    properties = {"destination": params.name, "payload": payload}
    event = wish(context, identifier, WEBHOOK_TEST_REQUESTED, properties, key, vouched=True)
    for receipt in context.engine.recorder.record([event]):
        if receipt.status == "rejected":
            raise InvalidValue(receipt.message, param="payload")
    return RequestTest(destination=params.name)


@operation("GET /v1/webhooks/presets", WEBHOOKS_GROUP, scope="admin")
def presets(context: Context, params: NoParams) -> ReadyMadeList:
    """List the destinations that ship ready-made, each with its text for the section `destinations`."""
    return ReadyMadeList(presets=[_ready_made(preset) for preset in shipped()])


def _ready_made(preset: Preset) -> ReadyMade:
    return ReadyMade(
        name=preset.name,
        title=preset.title,
        description=preset.description,
        needs=preset.needs,
        variables=preset.variables,
        text=preset.text,
    )


def operations(destinations: Destinations) -> Iterator[Operation]:
    """The operations that know what is declared."""
    yield preview(destinations)
    yield test(destinations)
