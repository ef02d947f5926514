"""Events and timers in words, and what Threadline made of an event under what the person did."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from threadline.kernel.event_type import NO_TYPES, EventType, EventTypes, is_in_millionths
from threadline.kernel.fixed import from_fixed
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.policy import Policy
from threadline.kernel.ports import Catalogue
from threadline.surfaces.console.formats import label, number, outcome, short, words

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_CONDITIONED = re.compile(r"(.*?) (\{.*\})", re.DOTALL)
_PLACE = re.compile(r"\{(\w+)\}")
_ONE = re.compile(r"\b1 (point|freeze|time)s\b")
_ADDRESS = re.compile(r"[@/]")
_IDS = re.compile(r"[0-9a-f]{12,}([./]|$)")
_UNSAID = frozenset({"policy", "kind", "occurrence", "draw", "provider_id", "transactional"})
"""Members that say nothing to a reader of a list; the page of the event has them."""


def event_name(type: Any) -> str:
    """A type of events as its name: ``purchase_completed`` is “Purchase completed”, ``*`` is any."""
    return "Any event" if type == "*" else label(str(type).removeprefix(SYSTEM_PREFIX))


def step_name(step: str) -> str:
    """A step of an analysis as its name: a type of events, or one with conditions as JSON behind it."""
    match = _CONDITIONED.fullmatch(step)
    return f"{event_name(match[1])} {match[2]}" if match else event_name(step)


def gist(values: Mapping[str, Any], length: int = 90) -> str:
    """The plain members of an object in one line, such as the properties of an event in a list."""
    plain = (
        f"{words(name)} {number(value)}"
        for name, value in values.items()
        if isinstance(value, (str, int, float)) and value != "" and name not in _UNSAID and not _IDS.match(str(value))
    )
    return short(" · ".join(plain), length)


class EventWords:
    """Events and timers in the words in which their types and policies are declared."""

    def __init__(self, types: EventTypes = NO_TYPES, policies: Iterable[Policy] = ()) -> None:
        self._types = types
        self._timers = {policy.name: policy.timers for policy in policies}

    def is_own(self, event: Mapping[str, Any]) -> bool:
        """Whether the person did it; else Threadline made it of that, or noted it."""
        type = str(event["type"])
        if event.get("source_type") != "internal" and not type.startswith(SYSTEM_PREFIX):
            return True
        declared = self._types.of(type)
        return declared.speaker != "anyone" and declared.acts and not (event.get("properties") or {}).get("machine")

    def sentence(self, event: Mapping[str, Any]) -> str:
        """What happened, as a sentence where there is one for the type, else its name."""
        declared = self._types.of(str(event["type"]))
        if not declared.sentence:
            return event_name(event["type"])
        properties = event.get("properties") or {}
        values = {name: _shown(declared, name, properties.get(name)) for name in _PLACE.findall(declared.sentence)}
        if not all(values.values()):
            return event_name(event["type"])
        return _ONE.sub(r"1 \1", declared.sentence.format_map(values))

    def timer_sentence(self, timer: Mapping[str, Any]) -> str:
        """What a pending timer is for, as a sentence where there is one for its policy, else the policy's name."""
        policy, key = str(timer["policy"]), str(timer["key"])
        for sentence, form in self._timers.get(policy, ()):
            if match := re.match(form, key):
                return sentence.format_map({name: _named(name, part) for name, part in match.groupdict().items()})
        return label(policy)

    def details(self, event: Mapping[str, Any], length: int = 140) -> str:
        """The plain properties in one line; nothing where the sentence has said what there is to say."""
        is_whole = self.sentence(event) != event_name(event["type"])
        return "" if is_whole else gist(event.get("properties") or {}, length)

    def properties(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The properties of an event as they are read, such as a score that is stored in millionths."""
        declared = self._types.of(str(event["type"]))
        return {name: _plain(declared, name, value) for name, value in (event.get("properties") or {}).items()}

    def folded(self, events: Sequence[Mapping[str, Any]], is_flat: Any = False) -> list[dict[str, Any]]:
        """Rows of a list: what people did, each with what it ``led_to``, and ``noted`` for what only Threadline noted.

        What follows from no event among these is noted by itself, together with what stands next to it. ``is_flat``: a
        row for each event.
        """
        if is_flat:
            return [{"event": event, "own": self.is_own(event), "led_to": []} for event in events]
        by_id = {event["id"]: event for event in events}
        rows: dict[str, dict[str, Any]] = {}
        listed: list[dict[str, Any]] = []
        for event in events:
            if self.is_own(event):
                rows[event["id"]] = {"event": event, "own": True, "led_to": []}
                listed.append(rows[event["id"]])
            elif not self._is_under(event, by_id):
                if not listed or "noted" not in listed[-1]:
                    listed.append({"noted": []})
                listed[-1]["noted"].append(event)
        for event in events:
            if not self.is_own(event) and (root := self._is_under(event, by_id)):
                rows[root]["led_to"].append(event)
        return listed

    def _is_under(self, event: Mapping[str, Any], by_id: Mapping[str, Mapping[str, Any]]) -> str:
        """The id of what the person did that an event follows from, through other such events; empty: not among
        these."""
        seen: set[str] = set()
        while (cause := str(event.get("cause", ""))) in by_id and cause not in seen:
            seen.add(cause)
            event = by_id[cause]
            if self.is_own(event):
                return cause
        return ""


@lru_cache(maxsize=4)
def event_words(catalogue: Catalogue) -> EventWords:
    """The words of everything that a catalogue declares."""
    return EventWords(catalogue.event_types, catalogue.policies)


def _named(name: str, text: str) -> str:
    """A part of a timer's key in words; months are counted from the year 0 on."""
    return f"{MONTHS[int(text) % 12]} {int(text) // 12}" if name == "month" else short(words(text), 60)


def _shown(type: EventType, name: str, value: Any) -> str:
    if value is None or isinstance(value, (dict, list)):
        return ""
    if name == "status":
        return outcome(value)
    value = _plain(type, name, value)
    if isinstance(value, (int, float)):
        return number(value)
    # An address is no name: what stands between its parts is not a blank.
    return short(value if _ADDRESS.search(str(value)) else words(value), 60)


def _plain(type: EventType, name: str, value: Any) -> Any:
    return from_fixed(value) if isinstance(value, int) and is_in_millionths(type.properties, name) else value
