"""Right before a call goes: the templates of its destination filled in, without any secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from threadline.capabilities.foundation.webhooks.definition import KIND, Destination
from threadline.capabilities.foundation.webhooks.filling import Filled, Filling, fill
from threadline.capabilities.foundation.webhooks.login import secret_in
from threadline.kernel.confined import Confined, Exceeded
from threadline.kernel.ports import Ports
from threadline.kernel.preparation import Answer, DueEffect, Preparation, Prepared
from threadline.kernel.sender import EFFECT_PARKED, Outcome
from threadline.kernel.webhook import CAUSES, RULE_MATCHED, allowed_payload

REQUEST = "request"
"""The member of the data of an effect in which its sender finds the request."""
_NOWHERE = "https://destination.invalid"
"""Stands for an address that is a secret while its query is filled in."""


def webhook_preparation(destinations: Mapping[str, Destination]) -> Preparation:
    """Fills in the requests of the destinations that are written; other calls go as their policy wished for."""

    def prepare(ports: Ports, due: Sequence[DueEffect]) -> list[Answer]:
        made: dict[str, Answer] = {}
        fillings: dict[str, tuple[Destination, Filling]] = {}
        for view, pending in due:
            data = pending.effect.data
            destination = destinations.get(str(data.get("destination")))
            if destination is None or not destination.is_written:
                made[pending.id] = Prepared(data=data)
            else:
                fillings[pending.id] = destination, filling_of(destination, data, pending.id, view.person)
        results = requests_of(ports.confined, [filling for _, filling in fillings.values()])
        for (id, (destination, _)), request in zip(fillings.items(), results, strict=True):
            data = next(pending.effect.data for _, pending in due if pending.id == id)
            made[id] = (
                Prepared(data={**data, REQUEST: sent_of(request)})
                if not request.failure
                else _failed(destination, request)
            )
        return [made[pending.id] for _, pending in due]

    return Preparation(KIND, prepare)


def _failed(destination: Destination, request: Filled) -> Outcome:
    return Outcome(
        type=EFFECT_PARKED,
        properties={"destination": destination.name},
        parked=f"its request cannot be made: {request.failure}"[:500],
    )


def filling_of(destination: Destination, data: Mapping[str, Any], id: str, person: str) -> Filling:
    """What a request is made of; secrets are left to the sender."""
    values = {
        "payload": allowed_payload(data.get("payload"), destination.payload)[0],
        **{name: data.get(name) for name in CAUSES},
        "at": data.get("at"),
        "type": data.get("type", RULE_MATCHED),
        "id": id,
        "person": person,
        "test": data.get("test") is True,
    }
    return Filling(
        _NOWHERE if secret_in(destination.url) else destination.url,
        {name: value for name, value in destination.query.items() if not secret_in(value)},
        {name: value for name, value in destination.headers.items() if not secret_in(value)},
        destination.body,
        destination.kind,
        values,
    )


def requests_of(confined: Confined, fillings: Sequence[Filling]) -> list[Filled]:
    """The requests, filled in within bounds."""
    results = confined.run(fill, fillings) if fillings else ()
    return [Filled(failure=result.why) if isinstance(result, Exceeded) else Filled(*result) for result in results]


def sent_of(request: Filled) -> dict[str, Any]:
    """What the sender gets of a request; of an address that is a secret the query alone."""
    return {"url": request.url.removeprefix(_NOWHERE), "headers": dict(request.headers), "body": request.body}
