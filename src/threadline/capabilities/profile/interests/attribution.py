"""The projection ``attribution``: the campaign that a person came from first, and the one last."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from threadline.capabilities.foundation.events.forms import instant
from threadline.kernel.event import Recorded
from threadline.kernel.merging import newest
from threadline.kernel.personal import PersonFile, shown_views
from threadline.kernel.projection import Depends, Faster, Projection
from threadline.kernel.view_parts import Parts, values

NAME = "attribution"
FIELDS = ("source", "medium", "name", "term", "content", "id")
"""What is kept of a campaign; ``name`` is what UTM parameters call ``utm_campaign``."""
FIELD_LENGTH_MAX = 200
QUERY_LENGTH_MAX = 4_096

State = list[Any]
"""[first, last]; each null or [occurred_at, event id, campaign]."""

_UTM = {f"utm_{'campaign' if field == 'name' else field}": field for field in FIELDS}


def campaign_of(properties: dict[str, Any], context: dict[str, Any]) -> dict[str, str] | None:
    """The campaign that an event names: ``context.campaign``, else the UTM parameters of its page; None if none."""
    named = context.get("campaign")
    if type(named) is dict:
        campaign = {}
        for field in FIELDS:
            value = named.get(field)
            if type(value) is str and (text := value.strip()[:FIELD_LENGTH_MAX]):
                campaign[field] = text
        if campaign:
            return campaign
    page = context.get("page")
    if type(page) is dict and (of_page := _of_page(page)):
        return of_page
    return _of_page(properties) if "url" in properties or "search" in properties else None


def _of_page(page: dict[str, Any]) -> dict[str, str] | None:
    for name in ("search", "url"):
        address = page.get(name)
        if type(address) is str and "utm_" in address and (campaign := _from_query(address)):
            return campaign
    return None


def _from_query(address: str) -> dict[str, str]:
    try:
        address = address[:QUERY_LENGTH_MAX]
        # What a page calls its search may come without the question mark.
        query = urlsplit(address).query if "?" in address else address
        pairs = parse_qsl(query, max_num_fields=100)
    except ValueError:
        return {}
    return {_UTM[name]: text for name, value in pairs if name in _UTM and (text := _text(value))}


def _text(value: object) -> str:
    return value.strip()[:FIELD_LENGTH_MAX] if type(value) is str else ""


def _fold(state: State, recorded: Recorded) -> State | None:
    event = recorded.event
    campaign = campaign_of(event.properties, event.context)
    if campaign is None:
        return None
    at, id = event.occurred_at, recorded.id
    first, last = state
    is_first = first is None or (at, id) < (first[0], first[1])
    is_last = last is None or (at, id) > (last[0], last[1])
    if is_first:
        state[0] = [at, id, campaign]
    if is_last:
        state[1] = [at, id, campaign]
    return state if is_first or is_last else None


def _view(state: State, now: int, edges: list[Recorded]) -> dict[str, Any]:
    return {"first_touch": _shown(state[0]), "last_touch": _shown(state[1])}


def _shown(touch: list[Any] | None) -> dict[str, Any] | None:
    return None if touch is None else {"at": instant(touch[0]), "event": touch[1], **touch[2]}


def _merge(first: State, second: State) -> State:
    if first[0] is None or second[0] is None:
        return second if first[0] is None else first
    later = newest(first[0], second[0])
    return [first[0] if later is second[0] else second[0], newest(first[1], second[1])]


_TOUCH = Parts(values("at", "event", *FIELDS))
_PARTS = Parts({"first_touch": _TOUCH, "last_touch": _TOUCH})
ATTRIBUTION = Projection(
    name=NAME,
    version=1,
    handles=None,
    empty=lambda: [None, None],
    fold=_fold,
    view=_view,
    depends=Depends(parts=_PARTS),
    faster=Faster(merge=_merge),
    carries={"": ""},
)

ATTRIBUTION_FILE = PersonFile(
    "attribution",
    "How you found the way here",
    "The campaigns and pages from which you came first and last.",
    shown_views("attribution"),
    ("attribution",),
)
