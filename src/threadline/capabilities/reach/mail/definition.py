"""What users declare about mail: senders, templates, limits and the provider, read from the section ``mail``."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.declaring import (
    LINES,
    NAME_FORM,
    Form,
    Given,
    Problems,
    Single,
    by_name,
    described,
    duration,
    listed,
    name_of,
    parsed,
    positive,
    struct,
    text,
    whole,
)
from threadline.capabilities.foundation.definitions.document import BY_HAND, DRAFT
from threadline.capabilities.reach.mail.blocks import BLOCKS, COLOR, Block
from threadline.capabilities.reach.messages.limits import Limits, Most, QuietHours
from threadline.kernel.address import parse_address
from threadline.kernel.calendar import canonical_zone
from threadline.kernel.errors import InvalidAddress, InvalidValue
from threadline.kernel.extra import missing
from threadline.kernel.inbox import PROVIDER_URL
from threadline.kernel.limits import (
    MAIL_CAP_MAX,
    MAIL_CAPS_MAX,
    MAIL_LANGUAGES_MAX,
    MAIL_SENDERS_MAX,
    MAIL_TEMPLATES_MAX,
    MAIL_VARIABLES_MAX,
    MAIL_WARM_UP_DAYS_MAX,
)
from threadline.kernel.names import PATH_NAME, PATH_SPELLING, VARIABLE, NameKind
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import DAY, SECOND, format_duration, parse_time

KIND = QUEUE = "mail"
"""The kind of effect, and the queue in which mails wait."""
SECTION_NAME = "mail"
SHARED = "mail_templates"
"""The name under which the history of definitions keeps versions of templates."""
INBOX = PROVIDER_URL
"""The provider that keeps mails where developers read them; nothing leaves the machine."""
SCHEMES = ("inbox", "smtp", "smtps", "ses", "env")

FILE = re.compile(r"[^\s{<]+\.(html|htm|mjml|txt|j2)")
"""What of a template names a file; anything else is the text itself."""


def _address(written: str) -> str:
    return "@".join(parse_address(written))


def _provider(written: str) -> str:
    scheme = written.partition(":")[0]
    if scheme not in SCHEMES or ":" not in written:
        raise InvalidValue(suggestion(scheme, SCHEMES))
    return written


def _domain(written: str) -> str:
    try:
        return parse_address(f"a@{written}").domain
    except InvalidAddress:
        raise InvalidValue(f"{written[:80]!r} is not a domain") from None


_DOMAIN = parsed(_domain, "a domain such as shop.example")
_ADDRESS = parsed(_address, "an address such as hello@shop.example", format="email")
_ZONE = parsed(canonical_zone, "a time zone such as Europe/Berlin")
_DATE = parsed(parse_time, "a date such as 2026-06-01")
_TEMPLATE_NAME = text(f"a name of {PATH_SPELLING}, such as welcome", PATH_NAME.pattern)
_LANGUAGE = text("a language such as en or pt-BR", r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}")
_VARIABLE = text("a name of lower-case letters, digits and _, such as order", VARIABLE.pattern)
_GIVE_UP = duration(SECOND, 30 * DAY).then(lambda size: size / SECOND, lambda size: format_duration(int(size * SECOND)))
_LONG = described(text(), **{LINES: True})
_ANYTHING: Form[Any] = Form((str, int, float, bool, list, dict), "a value", lambda part: part.value, {})


class Provider(msgspec.Struct, frozen=True, kw_only=True, rename={"unknown_seconds": "unknown_after"}):
    """Who carries mails out, and how many at a time."""

    url: Annotated[
        str,
        parsed(_provider, "an address such as smtp://relay.example:587, ses://eu-west-1, inbox: or env:MAIL_URL"),
        Meta(description="`inbox:` keeps mails on this machine; `env:NAME` takes it from an environment variable."),
    ] = INBOX
    per_second: Annotated[float | None, positive(), Meta(description="The most mails in a second.")] = None
    at_once: Annotated[int, Meta(ge=1, le=64, description="Mails that are sent at the same time.")] = 16
    unknown: Annotated[
        Literal["wait", "assume_done", "send_again"],
        Meta(
            description="What becomes of a mail that may have been sent, if feedback has not said it after "
            "`unknown_after`: it waits for an operator, counts as sent, or is sent again, maybe a second time."
        ),
    ] = "wait"
    unknown_seconds: Annotated[float, _GIVE_UP] = 3 * DAY / SECOND


class Dkim(msgspec.Struct, frozen=True, kw_only=True):
    """A signature of the sender's domain, where the relay does not sign."""

    selector: Annotated[str, text("a selector such as s1", r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")]
    key_file: Annotated[str, Meta(description="A file with the private key in PEM, beside the definitions.")]
    domain: Annotated[str, _DOMAIN, Meta(description="The domain that signs; else that of the address.")] = ""


class WarmUp(msgspec.Struct, frozen=True, kw_only=True):
    """How many mails a new domain sends on each of its first days."""

    starts: Annotated[int, _DATE, Meta(description="The first day, in UTC.")]
    mails: Annotated[
        tuple[int, ...],
        listed(whole(1, 10_000_000), 1, MAIL_WARM_UP_DAYS_MAX),
        Meta(description="The most mails on the first day, the second, …; after the last there is no limit."),
    ]

    def most(self, at: int) -> int | None:
        """How many mails the domain may send on the day of an instant; None: any number."""
        day = (at - self.starts) // DAY
        return self.mails[max(day, 0)] if day < len(self.mails) else None


class Sender(msgspec.Struct, frozen=True, kw_only=True, rename={"address": "from", "display_name": "name"}):
    """Who a mail is from."""

    id: Given
    address: Annotated[str, _ADDRESS, Meta(description="The address that mails are from.")]
    display_name: Annotated[str, text("a name without line breaks", r"[^\x00-\x1f\x7f]+", most=200)] = ""
    reply_to: Annotated[str, _ADDRESS, Meta(description="Where answers go.")] = ""
    replies: Annotated[
        str, _ADDRESS, Meta(description="Where answers go that Threadline reads; each mail gets an address of its own.")
    ] = ""
    bounces: Annotated[
        str, _ADDRESS, Meta(description="The envelope sender, where failures are reported; else `from`.")
    ] = ""
    domain: Annotated[str, _DOMAIN, Meta(description="The domain of Message-IDs; else that of `from`.")] = ""
    dkim: Dkim | None = None
    warm_up: WarmUp | None = None
    place: Given = ""

    def problems(self, written: Collection[str]) -> Problems:
        """Addresses that exclude each other."""
        if self.reply_to and self.replies:
            yield "replies", "`reply_to` and `replies` are both where answers go; keep one"
        if self.dkim is not None and (problem := missing("dkim", "dkimpy", "dkim")):
            yield "dkim", problem
        if self.dkim is not None and self.place.rpartition(":")[0] in (BY_HAND, DRAFT):
            yield "dkim", "names a file with a key, and what is made by hand lies in no folder; declare it in a file"

    @property
    def id_domain(self) -> str:
        """The domain of its Message-IDs."""
        return self.domain or self.address.rpartition("@")[2]


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A value that whoever sends a mail gives to its template."""

    default: Annotated[Any, _ANYTHING, Meta(description="Its value where none is given; without it one must be.")] = (
        None
    )
    example: Annotated[Any, _ANYTHING, Meta(description="Its value in previews.")] = None
    description: str = ""


class Wording(msgspec.Struct, frozen=True, kw_only=True):
    """What a mail says in one language."""

    subject: str
    preheader: Annotated[
        str, text(most=300), Meta(description="What mail programs show behind the subject; goes with `blocks`.")
    ] = ""
    blocks: Annotated[
        tuple[Block, ...], BLOCKS, Meta(description="The mail as headings, texts, buttons, pictures and columns.")
    ] = ()
    html: Annotated[str, _LONG, Meta(title="HTML", description="The HTML part, or a file that ends in .html.")] = ""
    mjml: Annotated[
        str, _LONG, Meta(title="MJML", description="The HTML part in MJML, or a file that ends in .mjml.")
    ] = ""
    text: Annotated[str, _LONG, Meta(description="The text part, or a file; else it is made from the HTML part.")] = ""
    place: Given = ""
    subject_place: Given = ""
    html_place: Given = ""
    mjml_place: Given = ""
    text_place: Given = ""

    def problems(self, written: Collection[str]) -> Problems:
        """Parts that exclude each other."""
        bodies = [name for name in _BODIES if name in written]
        if len(bodies) > 1:
            yield bodies[1], f"has both `{bodies[0]}` and `{bodies[1]}`; keep one"
        elif not (bodies or self.text):
            yield "", "needs `blocks`, `html`, `mjml` or `text`"
        if self.preheader and not self.blocks:
            yield "preheader", "`preheader` goes with `blocks`; MJML has <mj-preview> for it"
        for part, (module, named) in _BODIES.items():
            if part in written and (problem := missing(module, named, "mail")):
                yield part, problem

    @property
    def parts(self) -> dict[str, tuple[str, str]]:
        """What is filled in, but for the blocks: part -> (its source or file, file and line of it)."""
        parts = {
            "subject": (self.subject, self.subject_place),
            "html": (self.html, self.html_place),
            "mjml": (self.mjml, self.mjml_place),
            "text": (self.text, self.text_place),
        }
        return {part: (source, place) for part, (source, place) in parts.items() if source}


_BODIES = {"html": ("css_inline", "css-inline"), "mjml": ("mrml", "mrml"), "blocks": ("mrml", "mrml")}
"""What the HTML part may be written as -> the module that it needs, and its package."""


class Languages(msgspec.Struct, frozen=True, kw_only=True):
    """Languages in which there is a mail, and who gets which."""

    fallback: Annotated[
        str,
        _LANGUAGE,
        Meta(description="The language of the template's own parts, for everybody else.", examples=["en"]),
    ]
    trait: Annotated[
        str,
        text(most=200),
        Meta(description="The trait of a person that says their language, such as `de` or `de-AT`."),
    ] = "locale"
    also: Annotated[
        dict[str, Wording],
        by_name(struct(Wording), _LANGUAGE, 0, MAIL_LANGUAGES_MAX),
        Meta(description="The mail in each other language."),
    ] = {}

    def problems(self, written: Collection[str]) -> Problems:
        """Languages that are one, or two."""
        known = {self.fallback.casefold()}
        for language in self.also:
            if language.casefold() in known:
                yield ("also", language), "is there already; keep one"
            known.add(language.casefold())


class Template(Wording, frozen=True, kw_only=True):
    """A mail as it is written, before it is filled in for somebody."""

    name: Given
    languages: Languages | None = None
    sender: Annotated[
        str, name_of("sender"), Meta(description="A declared sender; needed where there are several.")
    ] = ""
    topic: Annotated[
        str, name_of("topic"), Meta(description="What people can unsubscribe from without leaving the rest.")
    ] = ""
    transactional: Annotated[
        bool, Meta(description="Whether the person has asked for it by what they did, as with a receipt.")
    ] = False
    accent: Annotated[str, COLOR, Meta(description="The colour of buttons and links in blocks.")] = ""
    variables: Annotated[
        dict[str, Variable], by_name(struct(Variable), _VARIABLE, 0, MAIL_VARIABLES_MAX), Meta(description="By name.")
    ] = {}
    description: str = ""

    def problems(self, written: Collection[str]) -> Problems:
        """Parts that exclude each other, and variables that hide what every template sees."""
        yield from Wording.problems(self, written)
        for name in self.variables:
            if name in SEEN:
                yield ("variables", name), "is something that every template sees; take another name"

    @property
    def wordings(self) -> dict[str, Wording]:
        """Language -> what it says; that of the template itself is empty, and the first."""
        return {"": self, **(self.languages.also if self.languages is not None else {})}


class Cap(msgspec.Struct, frozen=True, kw_only=True):
    """The most marketing mails that one person gets in a time."""

    mails: Annotated[int, Meta(ge=1, le=MAIL_CAP_MAX)]
    per: Annotated[int, duration(1, 365 * DAY, "7d")]


SEEN: Mapping[str, tuple[str, ...]] = {
    "person": ("id", "email", "traits", "tags", "identifiers"),
    "event": ("id", "type", "occurred_at", "properties"),
    "features": (),
    "segments": (),
    "sender": ("name", "address"),
    "template": (),
    "topic": (),
    "message_id": (),
    "unsubscribe_url": (),
    "preferences_url": (),
    "confirm_url": (),
    "pictures_url": (),
}
"""What every template sees, with the members of each; none: any member or no member."""
LINKS = ("unsubscribe_url", "preferences_url", "confirm_url", "pictures_url")
"""Those of them that are links of our own."""

_STRUCTS: Mapping[str, tuple[type, Form[str], int]] = {
    "senders": (Sender, NAME_FORM, MAIL_SENDERS_MAX),
    "templates": (Template, _TEMPLATE_NAME, MAIL_TEMPLATES_MAX),
}


def _named(section: str) -> Form[Any]:
    kind, names, most = _STRUCTS[section]
    return by_name(struct(kind), names, 0, most)


class Mail(msgspec.Struct, frozen=True, kw_only=True, rename={"give_up_seconds": "give_up_after"}):
    """Mail to people: who it is from, what it says, who carries it out, and how much of it anybody gets."""

    provider: Provider = Provider()
    senders: Annotated[dict[str, Sender], _named("senders"), Meta(description="Who mails are from, by name.")] = {}
    templates: Annotated[dict[str, Template], _named("templates"), Meta(description="Mails by name.")] = {}
    caps: Annotated[
        tuple[Cap, ...],
        listed(struct(Cap), 0, MAIL_CAPS_MAX),
        Meta(description="The most marketing mails that one person gets."),
    ] = ()
    quiet_hours: QuietHours | None = None
    timezone: Annotated[
        str, _ZONE, Meta(description="The zone of people who have no trait `timezone`.", examples=["Europe/Berlin"])
    ] = "UTC"
    give_up_seconds: Annotated[
        float,
        _GIVE_UP,
        Meta(description="How long a mail is tried."),
    ] = 3 * DAY / SECOND
    place: Given = ""

    def problems(self, written: Collection[str]) -> Problems:
        """Templates of which it is not clear who sends them."""
        for name, template in self.templates.items():
            if not template.sender and len(self.senders) != 1:
                several = suggestion("", self.senders) if self.senders else "declare one under `senders`"
                yield ("templates", name), f"needs `sender`; {several}"

    @property
    def limits(self) -> Limits:
        """What holds up mails that are not transactional."""
        caps = tuple(Most(cap.mails, cap.per) for cap in self.caps)
        return Limits(caps, self.quiet_hours, self.timezone, self.give_up_seconds)

    def sender_of(self, template: Template, name: str = "") -> Sender:
        """The sender of a mail: of this name, else as the template says, else the only one. Raises `InvalidValue`."""
        name = name or template.sender or next(iter(self.senders), "")
        if name not in self.senders:
            raise InvalidValue(f"there is no sender {name[:64]!r}; {suggestion(name, self.senders)}", param="sender")
        return self.senders[name]


MAIL = Single(SECTION_NAME, struct(Mail), frozenset({"mail"}))
SECTION = MAIL.declared
TEMPLATE = NameKind(
    "template",
    lambda definitions: definitions.names_in(SECTION_NAME, "templates"),
    PATH_NAME,
    lambda engine, workspace: engine.definition_history.names(SHARED),
)
SENDER = NameKind("sender", lambda definitions: definitions.names_in(SECTION_NAME, "senders"))
"""Any is right where no mail is declared: another program may send it."""


def read_mail(definitions: Definitions) -> Mail | None:
    """What is declared; None if no file has the section, or nothing of it can be used. Problems are noted."""
    if not definitions.section(SECTION_NAME):
        return None
    nothing = Mail(place="")
    mail = MAIL.read(definitions, nothing)
    return None if mail is nothing else mail
