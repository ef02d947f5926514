"""A broadcast as a form: what was filled in or is stored, and the parameters that it says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

from threadline.capabilities.foundation.conditions import plain, read_json
from threadline.kernel.errors import InvalidValue, ThreadlineError
from threadline.surfaces.console import condition_form
from threadline.surfaces.console.actions import JSON, LIST, Pairs, values_of
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.condition_form import PREFIX, Group, Row, beyond_of, changed, form_of, is_blank
from threadline.surfaces.console.editing import DO, conditions_of

KIND = "_broadcast"
"""The field that says that a form is one of a broadcast."""
SEND, HOLDOUT, SHARE, ARM = "_send", "_holdout", "_share", "_arm"
"""Fields: when it is sent; the control group and the first share of a winner in per cent; that there is a variant of a
number."""
NOW, AT, OWN = "now", "at", "own"
KEY = "when"
"""Conditions of an audience are those of a segment."""
PLAIN = ("id", "template", "sender", "subject", "topic", "at", "zone", "per_hour", "audience.segment")
TAGS, WHEN = f"audience.tags{LIST}", f"audience.when{JSON}"
WINNER = ("metric", "after", "event")
ARM_FIELDS = ("name", "weight", "subject", "template")
ARMS_MAX = 10
_NAMES = "abcdefghij"


class BroadcastForm(NamedTuple):
    """A broadcast that is being written."""

    values: Mapping[str, str]
    """Texts of fields by name; those of variables as ``variables.NAME``."""
    arms: tuple[Mapping[str, str], ...]
    """The variants, each as the texts of its fields."""
    conditions: Group
    beyond: Mapping[str, Any]
    """Parts that no field shows, by the names of parameters; they stay as they are."""
    focus: str = ""
    """The field that is to be filled in next."""


def posted(asking: Asking) -> BroadcastForm:
    """The form that was sent, after the button that was pressed."""
    query, do = asking.query, asking.query.get(DO, "")
    arms: list[Mapping[str, str]] = []
    while f"{ARM}.{len(arms)}" in query:
        arms.append({field: query.get(f"arms.{len(arms)}.{field}", "") for field in ARM_FIELDS})
    conditions, focus = changed(conditions_of(asking, query, KEY), do)
    if do == "arm.add" and len(arms) < ARMS_MAX:
        focus = f"arms.{len(arms)}.subject"
        for _ in range(1 if arms else 2):  # one variant alone would be sent to everybody
            arms.append(_new_arm(arms))
    if do.startswith("arm.drop:"):
        number = do.partition(":")[2]
        arms = [arm for index, arm in enumerate(arms) if str(index) != number]
        focus = "arms.add"
    return BroadcastForm(query, tuple(arms), conditions, beyond_of(query), focus)


def _new_arm(arms: Sequence[Mapping[str, str]]) -> dict[str, str]:
    taken = {arm["name"] for arm in arms}
    return {"name": next(name for name in _NAMES if name not in taken), "weight": "1", "subject": "", "template": ""}


def begun(broadcast: Mapping[str, Any], id: str) -> BroadcastForm:
    """The form of a broadcast that there is, or of none: then it is new."""
    audience = broadcast.get("audience") or {}
    values = {name: str(broadcast[name]) for name in PLAIN if broadcast.get(name)}
    values |= {"id": id, "audience.segment": audience.get("segment", ""), TAGS: "\n".join(audience.get("tags", ()))}
    for name, value in (broadcast.get("variables") or {}).items():
        values[f"variables.{name}"] = value if isinstance(value, str) else json.dumps(value)
    if "at" in broadcast:
        values[SEND] = OWN if broadcast.get("in_zone_of_recipient") else AT
    values[HOLDOUT] = _percent(broadcast.get("holdout"))
    winner = broadcast.get("winner") or {}
    values[SHARE] = _percent(winner.get("share"))
    values |= {
        f"winner.{name}": str(winner.get(name, "clicks" if name == "metric" and winner else "")) for name in WINNER
    }
    arms = tuple({field: str(arm.get(field, "")) for field in ARM_FIELDS} for arm in broadcast.get("arms", ()))
    conditions, beyond = Group("all", (Row(),), is_single=True), {}
    if audience.get("when") is not None:
        shown = form_of(read_json(audience["when"], "audience.when"))
        beyond = {"audience.when": audience["when"]} if shown is None else {}
        conditions = shown or conditions
    if audience.get("attributes"):
        beyond["audience.attributes"] = audience["attributes"]
    return BroadcastForm(values, arms, conditions, beyond)


def _percent(share: Any) -> str:
    return f"{Decimal(str(share)) * 100:f}".removesuffix(".0") if share else ""


def completed(asking: Asking, pairs: Pairs) -> Pairs:
    """The fields of a form that is sent to an operation; that of a broadcast with what its own fields say."""
    fields = dict(pairs)
    return [*_parameters(asking, pairs, fields)] if KIND in fields else pairs


def _parameters(asking: Asking, pairs: Pairs, fields: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    send = fields.get(SEND, NOW)
    has_winner = bool(fields.get("winner.metric"))
    for name, value in pairs:
        is_time, is_winner = name in ("at", "zone"), name.startswith("winner.")
        if not (is_time and send == NOW) and not (is_winner and not has_winner):
            yield name, value
    if send != NOW and not fields.get("at", "").strip():
        raise InvalidValue("choose the date and the time", param="at")
    if send == OWN:
        yield "in_zone_of_recipient", "true"
    if fields.get(HOLDOUT, "").strip():
        yield "holdout", _share(fields[HOLDOUT], HOLDOUT)
    if has_winner and fields.get(SHARE, "").strip():
        yield "winner.share", _share(fields[SHARE], SHARE)
    beyond = beyond_of(fields)
    conditions = conditions_of(asking, fields, KEY) if f"{PREFIX}.how" in fields else Group("all", ())
    if not is_blank(conditions):
        beyond["audience.when"] = plain(condition_form.sent_tree(conditions))
    for name, value in beyond.items():
        yield f"{name}{JSON}", json.dumps(value)


def _share(text: str, param: str) -> str:
    try:
        share = Decimal(text.strip().removesuffix("%")) / 100
    except InvalidOperation:
        share = Decimal("nan")
    if not share.is_finite() or not 0 <= share < 1:
        raise InvalidValue(f"{text[:40]!r} is no share: write per cent, from 0 to below 100", param=param)
    return f"{share:f}"


def parameters(asking: Asking) -> dict[str, Any]:
    """The parameters that the form says which a page was asked for with. Raises `InvalidValue` for a mistake."""
    pairs = [(name, value) for name, values in asking.queries.items() for value in values]
    return values_of(completed(asking, pairs))


def offered(asking: Asking) -> dict[str, Any]:
    """What can be chosen in the form. The page does not show these questions: they only fill it."""
    before = [*asking.calls]
    mail = asking.ask("mail_templates")
    segments = asking.ask_or({}, "segments_list").get("segments", [])
    topics = asking.ask_or({}, "consent_topics").get("topics", [])
    asking.calls[:] = before
    return {
        "templates": mail["templates"],
        "senders": mail["senders"],
        "timezone": mail["timezone"],
        "segments": [segment["name"] for segment in segments],
        "topics": [(topic["name"], topic["title"] or topic["name"]) for topic in topics],
    }


def arms_of(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The variants among parameters as they were sent, which may be anything."""
    arms = given.get("arms")
    return [arm for arm in arms if isinstance(arm, dict)] if isinstance(arms, list) else []


def shares(given: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The share of the audience that gets each variant, and last the control group's under the name ``holdout``; none
    where everybody gets the same."""
    holdout = float(given.get("holdout") or 0)
    weights = [(str(arm.get("name", "")), _weight(arm.get("weight", 1))) for arm in arms_of(given)]
    rest = (1 - holdout) / max(sum(weight for _, weight in weights), 1)
    return [*((name, weight * rest) for name, weight in weights), *([("holdout", holdout)] if holdout else [])]


def _weight(value: Any) -> int:
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 5 else 1


def mails(asking: Asking, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each variant as it would look for somebody made up, or why it cannot be filled in."""
    for arm in arms_of(given) or [{}]:
        asked = {
            "template": arm.get("template") or given.get("template"),
            "subject": arm.get("subject") or given.get("subject"),
            "sender": given.get("sender"),
            "variables": given.get("variables"),
        }
        query = {f"v.{name}": value for name, value in (given.get("variables") or {}).items()} | {"part": "html"}
        try:
            yield {"arm": arm.get("name", ""), "query": query, "mail": asking.ask("mail_preview", **asked)}
        except ThreadlineError as error:
            yield {"arm": arm.get("name", ""), "problem": str(error), "hint": error.hint}
