"""What users declare in the section ``consent``: topics, and the texts of the pages."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.declaring import (
    NAME_FORM,
    Given,
    Problems,
    Single,
    by_name,
    name_of,
    struct,
    text,
)
from threadline.kernel.limits import TOPICS_MAX
from threadline.kernel.names import PATH_NAME, NameKind
from threadline.kernel.suggestion import suggestion

TEXT_LENGTH_MAX = 500
TEXTS = {
    "language": "en",
    "title": "Your mail preferences",
    "intro": "What {brand} may send to {address}.",
    "save": "Save",
    "saved": "Saved. This is what you get from now on.",
    "all": "Unsubscribe from everything",
    "all_hint": "Then you get no newsletters at all, only what concerns your account or an order.",
    "unsubscribe_title": "Unsubscribe",
    "unsubscribe_question": "Should {address} get no more mails about “{topic}”?",
    "unsubscribe_question_all": "Should {address} get no more newsletters at all?",
    "unsubscribe": "Yes, unsubscribe",
    "unsubscribed": "Done. You will get no more of these mails.",
    "other": "Choose what you get instead",
    "confirm_title": "One more click",
    "confirm_question": "Should {address} get mails about “{topic}”?",
    "confirm": "Yes, subscribe me",
    "confirmed": "Thank you. You are subscribed.",
    "suppressed": "We do not write to this address at present, because mail to it came back or was reported. "
    "Please ask us if you want to get mail again.",
    "unknown": "This link is not complete. Please open it once more from the mail.",
}
"""What pages say, by name; each can be declared in another language."""


class Topic(msgspec.Struct, frozen=True, kw_only=True):
    """What people subscribe to."""

    name: Given
    title: Annotated[str, Meta(max_length=TEXT_LENGTH_MAX, description="What pages call it.")] = ""
    description: Annotated[str, Meta(max_length=TEXT_LENGTH_MAX, description="What somebody gets, in a sentence.")] = ""
    default: Annotated[
        Literal["opted_in", "opted_out"], Meta(description="Whether people get it who have said nothing.")
    ] = "opted_out"
    confirm: Annotated[
        str,
        name_of("template", PATH_NAME),
        Meta(description="Double opt-in: the mail template with the link that confirms."),
    ] = ""

    @property
    def shown(self) -> str:
        """What pages call it."""
        return self.title or self.name.replace("_", " ").capitalize()

    def problems(self, written: Collection[str]) -> Problems:
        """What the fields cannot be together."""
        if self.confirm and self.default == "opted_in":
            yield "default", "`opted_in` sends before anybody has confirmed; remove it, or `confirm`"


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """What people may subscribe to, and what pages say to them."""

    topics: Annotated[
        dict[str, Topic],
        by_name(struct(Topic), NAME_FORM, most=TOPICS_MAX),
        Meta(description="Topics by name, in the order of the page."),
    ] = {}
    brand: Annotated[str, Meta(max_length=100, description="Who writes, as pages name it.")] = "we"
    texts: Annotated[
        dict[str, str],
        by_name(text(most=TEXT_LENGTH_MAX)),
        Meta(description="Texts of the pages in your words: language, title, intro, save and others."),
    ] = {}

    @property
    def fingerprint(self) -> str:
        """A hash of what shapes states: which topics there are."""
        return hashlib.blake2b("\n".join(sorted(self.topics)).encode(), digest_size=8).hexdigest()

    def text(self, name: str) -> str:
        """What pages say, as declared or as it ships."""
        return self.texts.get(name) or TEXTS[name]

    def problems(self, written: Collection[str]) -> Problems:
        """Texts that no page has."""
        for name in self.texts:
            if name not in TEXTS:
                yield ("texts", name), f"no page has this text; {suggestion(name, TEXTS)}"


CONSENT = Single("consent", struct(Consent))
TOPIC = NameKind("topic", lambda definitions: definitions.names_in(CONSENT.section, "topics"))
"""Any is right where none is declared."""


def read_consent(definitions: Definitions | None) -> Consent:
    """What is declared; without the section nothing. Problems are noted in the documents."""
    return Consent() if definitions is None else CONSENT.read(definitions, Consent())
