"""The public addresses of consent: one-click unsubscribing, the preferences page, and the confirmation of an opt-in.

GET only shows, because programs that scan mail follow every link. A POST needs no cookie, no login and no origin: the
token says who asks. Whatever the token, the status is 200, and an unknown one discloses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from threadline.capabilities.reach.consent import page
from threadline.capabilities.reach.consent.definition import Consent
from threadline.capabilities.reach.consent.links import (
    CONFIRM_PATH,
    PREFERENCES_PATH,
    UNSUBSCRIBE_PATH,
    Recipient,
    path_to,
    recipient_of,
)
from threadline.capabilities.reach.consent.recording import standings, subscribe, unsubscribe
from threadline.capabilities.reach.consent.rows import suppression_of
from threadline.capabilities.reach.consent.standing import GETS_MAIL
from threadline.kernel.address import normal_address
from threadline.kernel.ports import Ports
from threadline.kernel.public_route import PublicAnswer, PublicRequest, PublicRoute

BODY_BYTES_MAX = 16 * 1_024
SAME_PER_MINUTE = 60
"""Of one recipient's page: nobody presses its button more often."""
UNSUBSCRIBED = PublicAnswer(b"Unsubscribed.\n", "text/plain; charset=utf-8")
"""For the server of a mail provider, which asks in the name of a reader; the same for every token."""
_FIELDS_MAX = 100


class Visit(NamedTuple):
    """A request with a token of ours."""

    consent: Consent
    engine: Ports
    recipient: Recipient
    form: Mapping[str, list[str]]
    """The fields of one of our own forms; empty for any other body."""
    signal: Mapping[str, bool]
    """``gpc``, if the browser sends Global Privacy Control."""

    @property
    def preferences_path(self) -> str:
        """The recipient's preferences page."""
        return path_to(self.engine, PREFERENCES_PATH, self.recipient._replace(topic=""))

    def sentence(self, name: str) -> str:
        """A text of the pages about the recipient, as HTML."""
        return page.sentence(self.consent, name, self.recipient.address, self.recipient.topic)


def routes(consent: Consent) -> list[PublicRoute]:
    """The public routes of these definitions."""

    def get(name: str, summary: str, path: str, show: Callable[[Visit], PublicAnswer]) -> PublicRoute:
        return PublicRoute(
            f"consent_{name}",
            summary,
            "GET",
            path,
            partial(_answer, consent, path, show),
            same_per_minute=SAME_PER_MINUTE,
        )

    def post(name: str, summary: str, path: str, act: Callable[[Visit], PublicAnswer]) -> PublicRoute:
        answer = partial(_answer, consent, path, act)
        return PublicRoute(
            f"consent_{name}", summary, "POST", path, answer, BODY_BYTES_MAX, same_per_minute=SAME_PER_MINUTE
        )

    return [
        get("unsubscribe_page", "Show a button that unsubscribes.", UNSUBSCRIBE_PATH, _show_unsubscribe),
        post("unsubscribe", "Unsubscribe at once, as RFC 8058 has it.", UNSUBSCRIBE_PATH, _unsubscribe),
        get("preferences_page", "Show what somebody is subscribed to.", PREFERENCES_PATH, _show_preferences),
        post("preferences", "Change what somebody is subscribed to.", PREFERENCES_PATH, _save_preferences),
        get("confirm_page", "Show a button that confirms a subscription.", CONFIRM_PATH, _show_confirm),
        post("confirm", "Confirm a subscription.", CONFIRM_PATH, _confirm),
    ]


def _answer(
    consent: Consent, path: str, run: Callable[[Visit], PublicAnswer], engine: Ports, request: PublicRequest
) -> PublicAnswer:
    form = _form(request)
    recipient = recipient_of(engine, path, request.path["token"])
    if recipient is None:
        return UNSUBSCRIBED if run is _unsubscribe and "confirm" not in form else page.unknown(consent)
    signal = {"gpc": True} if request.headers.get("sec-gpc") == "1" else {}
    return run(Visit(consent, engine, recipient, form, signal))


def _form(request: PublicRequest) -> dict[str, list[str]]:
    if not request.headers.get("content-type", "").lower().startswith("application/x-www-form-urlencoded"):
        return {}
    try:
        return parse_qs(request.body.decode(), keep_blank_values=True, max_num_fields=_FIELDS_MAX)
    except ValueError:
        return {}


# --- unsubscribing ------------------------------------------------------------------------------


def _show_unsubscribe(visit: Visit) -> PublicAnswer:
    text = visit.sentence("unsubscribe_question" if visit.recipient.topic else "unsubscribe_question_all")
    return page.question(visit.consent, "unsubscribe_title", text, "unsubscribe", visit.preferences_path)


def _unsubscribe(visit: Visit) -> PublicAnswer:
    # Whatever the body: its form is the provider's affair, and the worst mistake is to write on.
    is_page = "confirm" in visit.form
    unsubscribe(visit.engine, visit.consent, visit.recipient, via="page" if is_page else "one_click", **visit.signal)
    if not is_page:
        return UNSUBSCRIBED
    return page.done(visit.consent, "unsubscribe_title", "unsubscribed", visit.preferences_path)


# --- preferences --------------------------------------------------------------------------------


def _show_preferences(visit: Visit, saved: bool = False) -> PublicAnswer:
    consent, engine, recipient = visit.consent, visit.engine, visit.recipient
    # Whom the browser speaks for by Global Privacy Control has agreed to nothing by default.
    agreed = GETS_MAIL - {"opted_in"} if visit.signal else GETS_MAIL
    ticked = {name for name, standing in standings(engine, consent, recipient).items() if standing.status in agreed}
    suppressed = suppression_of(engine.store, recipient.workspace, normal_address(recipient.address)) is not None
    return page.preferences(consent, recipient.address, ticked, saved=saved, suppressed=suppressed)


def _save_preferences(visit: Visit) -> PublicAnswer:
    consent, engine, recipient = visit.consent, visit.engine, visit.recipient
    given: dict[str, Any] = {"via": "preferences", **visit.signal}
    if "all" in visit.form:
        unsubscribe(engine, consent, recipient, **given)
    elif "save" in visit.form:
        ticked = visit.form.get("topic", [])
        for name, (status, _) in standings(engine, consent, recipient).items():
            about = recipient._replace(topic=name)
            if name in ticked and status not in GETS_MAIL:
                subscribe(engine, about, **given)
            elif name not in ticked and status not in ("unsubscribed", "opted_out"):
                unsubscribe(engine, consent, about, **given)
    else:
        return _show_preferences(visit)
    return _show_preferences(visit, saved=True)


# --- double opt-in ------------------------------------------------------------------------------


def _show_confirm(visit: Visit) -> PublicAnswer:
    return page.question(visit.consent, "confirm_title", visit.sentence("confirm_question"), "confirm")


def _confirm(visit: Visit) -> PublicAnswer:
    subscribe(visit.engine, visit.recipient, via="confirmation", **visit.signal)
    return page.done(visit.consent, "confirm_title", "confirmed", visit.preferences_path)
