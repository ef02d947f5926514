"""What a broadcast is made of, as its author writes it, and what follows from that for one person."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Duration
from threadline.capabilities.reach.broadcasts.events import HOLDOUT
from threadline.capabilities.reach.mail.definition import Mail
from threadline.capabilities.reach.mail.filling import Filled, paths_in
from threadline.kernel.arms import arm_at, draw, is_within
from threadline.kernel.calendar import instant_of, zone_named, zone_of_person
from threadline.kernel.disclosure import not_personal
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.names import names_a
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import HOUR, format_time, parse_duration, parse_time
from threadline.kernel.typed import prepared

ARMS_MAX = 10
TAGS_MAX = 20
VARIABLES_MAX = 50
BYTES_MAX = 32 * 1_024
EARLIEST_ZONE = 14 * HOUR
"""How far the clocks of the first zone are ahead of UTC."""
_OFFSET = re.compile(r"[Tt ][0-9].*(?:[Zz]|[+-][0-9]{2}(?::?[0-9]{2})?)\s*\Z")
"""At the end of a time: how far it is from UTC."""
_ARM = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")

TemplateName = Annotated[str, names_a("template"), Meta(description="A declared template.", max_length=64)]
Subject = Annotated[str, Meta(description="Instead of the template's subject, and filled in like it.", max_length=500)]


@not_personal
class Audience(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Who gets it: all that is given must be true of a person; nothing given means everybody."""

    segment: Annotated[str, names_a("segment"), Meta(description="They belong to this segment.", max_length=64)] = ""
    tags: Annotated[list[str], Meta(description="They have all of these tags.", max_length=TAGS_MAX)] = []
    when: Annotated[
        dict[str, Any] | None, Meta(description="A tree of conditions, as in segments: traits, tags, features, all.")
    ] = None
    attributes: Annotated[
        Annotated[dict[str, str | int | float | bool], Meta(max_length=TAGS_MAX)] | None,
        Meta(description="Traits by name, each with the value that it has: `{plan: pro}`."),
    ] = None


@not_personal
class Arm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A variant that a share of the recipients gets."""

    name: Annotated[
        str,
        Meta(
            description="Lower-case letters, digits, - and _.",
            min_length=1,
            max_length=32,
            extra_json_schema={"pattern": f"^{_ARM.pattern}$"},
        ),
    ]
    weight: Annotated[int, Meta(description="Its share, beside those of the others.", ge=1, le=1_000)] = 1
    template: TemplateName = ""
    subject: Subject = ""


class Winner(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A share gets the arms first; later the rest gets the arm that did best."""

    share: Annotated[float, Meta(description="The share that is sent first, between 0 and 1.", gt=0, lt=1)]
    after: Duration
    """How long to wait before the rest is sent."""
    metric: Literal["opens", "clicks", "conversions"] = "clicks"
    """What counts: people who opened or clicked, machines left out, or had the event `event`."""
    event: Annotated[str, Meta(description="The type of event that is a conversion.", max_length=200)] = ""


@not_personal
@prepared
class Broadcast(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A broadcast as it was created. It never changes once it was started."""

    template: TemplateName
    subject: Subject = ""
    sender: Annotated[str, names_a("sender"), Meta(description="Else that of the template.", max_length=64)] = ""
    topic: Annotated[
        str, names_a("topic"), Meta(description="What people unsubscribe from; else the template's.", max_length=64)
    ] = ""
    variables: Annotated[dict[str, Any], Meta(max_length=VARIABLES_MAX)] | None = None
    """Variables of the template."""
    audience: Audience | None = None
    """Who gets it; everybody without."""
    at: Annotated[
        str,
        Meta(
            description="When: a local time such as 2026-12-01T09:00, in `zone`, or an instant such as "
            "2026-12-01T08:00:00Z; empty: as soon as it is started.",
            max_length=40,
        ),
    ] = ""
    zone: Annotated[str, Meta(description="The zone of `at`, such as Europe/Rome.", max_length=64)] = "UTC"
    in_zone_of_recipient: Annotated[
        bool, Meta(description="`at` is each recipient's own (trait `timezone`), else in `zone`.")
    ] = False
    arms: Annotated[list[Arm], Meta(description="Variants; none: everybody gets the same.", max_length=ARMS_MAX)] = []
    holdout: Annotated[float, Meta(description="The share that gets nothing, 0 to 1.", ge=0, lt=1)] = 0.0
    winner: Winner | None = None
    per_hour: Annotated[
        int, Meta(description="How many people are addressed in an hour at most; 0: all at once.", ge=0, le=10_000_000)
    ] = 0

    def refuse_mistakes(self) -> None:
        """Raise `InvalidValue` with the first mistake that the types do not see."""
        for param, problem in self._mistakes():
            raise InvalidValue(f"{param}: {problem}", param=param)

        try:
            size = len(msgspec.json.encode(self))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise InvalidValue(f"a broadcast is written as JSON: {error}") from None
        if size > BYTES_MAX:
            raise InvalidValue(
                f"a broadcast has at most {BYTES_MAX:,} bytes as JSON, for every recipient's event has it"
            )

    def _mistakes(self) -> Iterator[tuple[str, str]]:
        names = [arm.name for arm in self.arms]
        for name in names:
            if not _ARM.fullmatch(name) or name == HOLDOUT:
                yield "arms", f"{name!r} cannot name an arm: lower-case letters, digits, - and _, and not {HOLDOUT!r}"
            if names.count(name) > 1:
                yield "arms", f"two arms are named {name!r}"
        if zone_named(self.zone) is None:
            yield "zone", f"{self.zone!r} is no time zone; write one such as Europe/Rome"
        elif self.at and instant_of(self.at, self.zone) is None:
            yield "at", f"{self.at!r} is no time; write a local one such as 2026-12-01T09:00, or an instant"
        if self.in_zone_of_recipient and not self.at:
            yield "in_zone_of_recipient", "needs `at`, the local time"
        if self.in_zone_of_recipient and self.per_hour:
            yield "per_hour", "cannot be kept where everybody has a time of their own; leave `in_zone_of_recipient` out"
        if self.winner is not None:
            if self.in_zone_of_recipient:
                yield "winner", "compares arms that are sent at one instant; leave `in_zone_of_recipient` out"
            if len(self.arms) < 2:
                yield "winner", "needs at least two arms to choose from"
            if (self.winner.metric == "conversions") != bool(self.winner.event):
                yield "winner", "give `event` with the metric conversions, and only with it"

    def refuse_undeclared(self, mail: Mail | None) -> None:
        """Raise `InvalidValue` for a template, a sender or a variable that the definitions do not know."""
        if mail is None:
            raise Conflict("no mail is declared here", hint="Write the section `mail` into the definitions.")
        if self.sender and self.sender not in mail.senders:
            hint = suggestion(self.sender, mail.senders)
            raise InvalidValue(f"sender: there is no sender {self.sender!r}; {hint}", param="sender")
        given = self.variables or {}
        for name in dict.fromkeys([self.template, *(arm.template for arm in self.arms if arm.template)]):
            template = mail.templates.get(name)
            if template is None:
                hint = suggestion(name, mail.templates)
                raise InvalidValue(f"template: there is no template {name!r}; {hint}", param="template")
            for variable, declared in template.variables.items():
                if declared.default is None and variable not in given:
                    message = f"variables: the template {name!r} needs a value for {variable!r}"
                    raise InvalidValue(message, param="variables")

    def refuse_subjects(self) -> None:
        """Raise `InvalidValue` for a subject that is no template: no mail with it could be filled in."""
        subjects = [("subject", self.subject), *((f"arms.{arm.name}", arm.subject) for arm in self.arms)]
        for param, subject in subjects:
            if isinstance(read := paths_in({param: subject}, param), Filled):
                raise InvalidValue(f"{param}: this subject cannot be filled in: {read.failure}", param="subject")

    def begins_at(self, started: int) -> int:
        """When it is resolved, if it is started at an instant: at its time, or at once if that has passed."""
        if not self.at:
            return started
        at = instant_of(self.at, "UTC" if self.in_zone_of_recipient else self.zone)
        assert at is not None, "checked when it was created"
        return max(started, at - EARLIEST_ZONE if self.in_zone_of_recipient else at)

    def due_at(self, profile: Any) -> int:
        """When the mail of a recipient with this profile is due; 0: at once."""
        if not self.in_zone_of_recipient:
            return 0
        return instant_of(self.at, zone_of_person(profile, self.zone)) or 0

    def rest_begins_at(self, began: int) -> int:
        """When the rest is sent, by the winner rule."""
        assert self.winner is not None
        return began + parse_duration(self.winner.after)

    def arm_of(self, id: str, person: str) -> str:
        """The arm of a person, by a hash of both and the weights; empty if the winner rule decides later."""
        if is_within(self.holdout, draw("broadcast", "holdout", id, person)):
            return HOLDOUT
        if self.winner is not None and not is_within(self.winner.share, draw("broadcast", "test", id, person)):
            return ""
        if not self.arms:
            return ALL
        return self.arms[arm_at([arm.weight for arm in self.arms], draw("broadcast", "arm", id, person))].name

    def message(self, arm: str) -> dict[str, Any]:
        """What is sent to the recipients of an arm, as the properties of their event."""
        chosen = next((candidate for candidate in self.arms if candidate.name == arm), Arm(name=arm))
        given = {
            "template": chosen.template or self.template,
            "subject": chosen.subject or self.subject,
            "sender": self.sender,
            "topic": self.topic,
            "variables": self.variables,
        }
        return {name: value for name, value in given.items() if value}


def time_and_zone(at: str, zone: str) -> tuple[str, str]:
    """A time as a broadcast keeps it, and its zone: an instant with an offset is a time in UTC, any other stands in
    its zone. What is no time is left as it is."""
    try:
        plain = format_time(parse_time(at))[: len("2026-12-01T09:00:00")]
    except InvalidValue:
        return at, zone
    return plain.removesuffix(":00"), "UTC" if is_instant(at) else zone


def is_instant(at: str) -> bool:
    """Whether a time says how far it is from UTC."""
    return _OFFSET.search(at) is not None


ALL = "all"
"""The arm of everybody where none are declared."""
