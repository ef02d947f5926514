"""Entries of the audit log in words: what somebody did, as a sentence, and to whom."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from threadline.kernel.operation import Operation
from threadline.surfaces.console.formats import label, number, short, words

SENTENCES: tuple[tuple[str, str], ...] = (
    ("accounts_create", "Created the account {name} with the role {role}"),
    ("accounts_change", "Gave the account {name} the role {role}"),
    ("accounts_change", "Gave the account {name} another password"),
    ("accounts_remove", "Removed the account {name}"),
    ("alerts_dismiss", "Dismissed the alert {alert}"),
    ("alerts_withdraw", "Withdrew the alert {id}"),
    ("alerts_write", "Wrote the alert {id}"),
    ("broadcasts_cancel", "Cancelled the broadcast {id}"),
    ("broadcasts_create", "Created the broadcast {id}"),
    ("broadcasts_measure", "Counted {event} after the broadcast {id}"),
    ("broadcasts_pause", "Paused the broadcast {id}"),
    ("broadcasts_resume", "Went on with the broadcast {id}"),
    ("broadcasts_start", "Started the broadcast {id}"),
    ("consent_change", "Subscribed to {subscribe}, unsubscribed from {unsubscribe}"),
    ("consent_change", "Subscribed to {subscribe}"),
    ("consent_change", "Unsubscribed from {unsubscribe}"),
    ("consent_change", "Changed what may be sent"),
    ("consent_link", "Made a link to the preferences"),
    ("definitions_accept", "Put the proposed {section} {name} in force"),
    ("definitions_apply", "Brought people up to the definitions"),
    ("definitions_apply_in_background", "Brought everybody up to the definitions"),
    ("definitions_declare", "Put the {section} {name} in force"),
    ("definitions_decline", "Declined the proposed {section} {name}"),
    ("definitions_withdraw", "Withdrew their proposed {section} {name}"),
    ("definitions_propose", "Proposed the {section} {name}"),
    ("definitions_reload", "Loaded the definition files"),
    ("effects_redrive", "Sent again what was given up on in the queue {queue}"),
    ("effects_redrive", "Sent again what was given up on"),
    ("effects_resolve", "Settled an unknown effect: {outcome}"),
    ("exports_start", "Started an export of the segment {segment}"),
    ("exports_start", "Started an export of people"),
    ("inbox_clear", "Emptied the development inbox"),
    ("jobs_cancel", "Cancelled the job {id}"),
    ("jobs_pause", "Paused the job {id}"),
    ("jobs_resume", "Went on with the job {id}"),
    ("journeys_enter", "Put somebody into the journey {name}"),
    ("journeys_exit", "Took somebody out of the journey {name}"),
    ("journeys_pause", "Paused the journey {name} for {person}"),
    ("journeys_pause", "Paused the journey {name}"),
    ("journeys_resume", "Went on with the journey {name} for {person}"),
    ("journeys_resume", "Went on with the journey {name}"),
    ("journeys_what_if_in_background", "Tried journeys on history"),
    ("keys_create", "Created the {kind} {name}"),
    ("keys_revoke", "Revoked the key {id}"),
    ("leaderboards_refresh", "Put everybody on the leaderboards again"),
    ("mail_send", "Sent the mail {template}"),
    ("memory_remember", "Noted the {type} {key}"),
    ("memory_retract", "Took the {type} {key} back"),
    ("memory_unretract", "Put a fact back that was taken back"),
    ("people_erase", "Erased somebody"),
    ("people_merge", "Joined with {other}"),
    ("people_split", "Split off {identifiers}"),
    ("people_tag", "Tagged {add}, no longer {remove}"),
    ("people_tag", "Tagged {add}"),
    ("people_tag", "Removed the tag {remove}"),
    ("people_unmerge", "Undid a join"),
    ("points_adjust", "Changed the balance by {points} points"),
    ("points_spend", "Spent {points} points"),
    ("quarantine_review", "Decided on a join in doubt, joined: {join}"),
    ("rejected_dismiss", "Dismissed a rejected event"),
    ("rule_sets_remove", "Removed the rule set {name}"),
    ("rule_sets_write", "Wrote the rule set {name}"),
    ("rules_activate", "Activated version {version} of the rule {id}"),
    ("rules_retire", "Retired version {version} of the rule {id}"),
    ("rules_retire", "Retired the rule {id}"),
    ("rules_shadow", "Let version {version} of the rule {id} run as a shadow"),
    ("rules_tested", "Marked version {version} of the rule {id} as tested"),
    ("rules_write", "Wrote a version of the rule {id}"),
    ("search_sync", "Brought the search index up to date"),
    ("segments_refresh", "Checked everybody's segments again"),
    ("suppression_add", "Suppressed the address {address}"),
    ("suppression_import", "Suppressed the addresses of a list"),
    ("suppression_lift", "Let the address {address} get mail again"),
    ("webhooks_start", "Started calls to {name}"),
    ("webhooks_stop", "Stopped calls to {name}"),
    ("what_if_cancel", "Cancelled a what-if"),
    ("what_if_resume", "Went on with a what-if"),
    ("sign_in", "Signed in as {name}"),
    ("sign_in", "Signed in"),
    ("what_if_run", "Tried the rule {rule} on history"),
    ("what_if_run", "Tried definitions on history"),
)
"""Operation, and the sentence for a call of it: the first one of which the entry has all that it names."""
SURFACE_NAMES = {
    "http": "API", "console": "console", "mcp": "an agent", "cli": "command line", "python": "Python",
}  # fmt: skip
"""Surface -> what a page calls it."""
PERSON = "/v1/people/{id}"
"""How the paths of operations on one person begin."""
DONE = "done"
_PLACE, _CLAUSE = re.compile(r"\{(\w+)\}"), re.compile(r"[:;,.]")
_LEFT_OUT = re.compile(r"(text|object|list) of \d+")
"""What the audit log has in the place of what it leaves out."""

_KINDS = frozenset({"section", "kind", "type", "outcome"})
"""Members that say what something is, in words of ours."""


def audit_sentence(entry: Mapping[str, Any], operation: Operation | None) -> str:
    """What was done, as a sentence; what was not done because it was refused or has failed says so."""
    sentence = next(_sentences(entry), "") or _summary(entry, operation)
    return sentence if entry["outcome"] == DONE else f"Not done: {sentence[:1].lower()}{sentence[1:]}"


def _sentences(entry: Mapping[str, Any]) -> Iterator[str]:
    for operation, pattern in SENTENCES:
        if operation == entry["operation"]:
            members = {**entry["given"], **entry["object"]}
            values = {name: _shown(name, members.get(name)) for name in _PLACE.findall(pattern)}
            if all(values.values()):
                yield pattern.format_map(values)


def _shown(name: str, value: Any) -> str:
    """A value as it stands in a sentence; empty where there is none, or none that can be said."""
    if isinstance(value, list):
        parts = [_shown(name, item) for item in value]
        return short(", ".join(parts), 80) if parts and all(parts) else ""
    if value is None or isinstance(value, dict) or (isinstance(value, str) and _LEFT_OUT.fullmatch(value)):
        return ""
    if not isinstance(value, str):
        return number(value)
    return words(value.removesuffix("s") if name == "section" else value) if name in _KINDS else short(value, 80)


def _summary(entry: Mapping[str, Any], operation: Operation | None) -> str:
    """What the operation is for, and what it was about."""
    does = label(entry["operation"]) if operation is None else _CLAUSE.split(operation.summary)[0]
    about = [text for name, value in entry["object"].items() if (text := _shown(name, value))]
    return f"{does}: {', '.join(about)}" if about else does


def person_of(entry: Mapping[str, Any], operation: Operation | None) -> str:
    """Whom an entry is about, by an id or an identifier; empty where it is about nobody."""
    is_about = operation is not None and operation.path.startswith(PERSON)
    return _shown("id", entry["object"].get("id")) if is_about else ""
