"""What a flag is made of, read from the section ``flags``."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.conditions import Conditions
from threadline.capabilities.foundation.conditions.forms import WHEN_FORM
from threadline.capabilities.foundation.definitions import Definitions, Part
from threadline.capabilities.foundation.definitions.declaring import (
    Form,
    Given,
    Named,
    Problems,
    by_name,
    struct,
    whole,
)
from threadline.kernel.errors import InvalidValue
from threadline.kernel.policy import Read

FLAGS_MAX = 500
RULES_MAX = 50
VARIANTS_MAX = 20
WEIGHT_MAX = 10_000

NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")


def _value(part: Part) -> Any:
    return part.value


VALUE: Form[Any] = Form(
    (bool, int, float, str, list, dict),
    "true, a number, a text, a list or a mapping",
    _value,
    {"type": ["boolean", "number", "string", "array", "object"]},
)


def _variant(part: Part) -> str:
    # YAML takes on and off, the names that most variants have, for true and false.
    name = part.written if isinstance(part.value, bool) else str(part.value)
    if not 0 < len(name) <= 100:
        raise InvalidValue("must be a name of 1 to 100 characters")
    return name


VARIANT: Form[str] = Form((str, bool), "the name of a variant", _variant, {"type": ["string", "boolean"]})
VARIANTS: Form[dict[str, Any]] = by_name(VALUE, least=1, most=VARIANTS_MAX)
SPLIT: Form[dict[str, int]] = by_name(whole(0, WEIGHT_MAX), least=1, most=VARIANTS_MAX)


class FlagRule(msgspec.Struct, frozen=True, kw_only=True, rename={"conditions": "when"}):
    """For whom it counts, and what they get: one variant, or one drawn by weights."""

    conditions: Annotated[
        Conditions | None, WHEN_FORM, Meta(description="Of whom it must be true; left out: of everybody.")
    ] = None
    variant: Annotated[str, VARIANT, Meta(description="The variant that they get.")] = ""
    split: Annotated[dict[str, int], SPLIT, Meta(description="Variant: weight, to draw one by a hash.")] = {}

    def problems(self, written: Collection[str]) -> Problems:
        """What a rule cannot do without."""
        if bool(self.variant) == bool(self.split):
            yield "variant", "give a variant, or a split with weights"
        elif self.split and not sum(self.split.values()):
            yield "split", "at least one weight is above 0"


class Flag(msgspec.Struct, frozen=True, kw_only=True):
    """A flag."""

    name: Given
    variants: Annotated[dict[str, Any], VARIANTS, Meta(description="Its variants by name, with the value of each.")]
    otherwise: Annotated[str, VARIANT, Meta(description="The variant of whom no rule speaks of.")]
    rules: Annotated[
        tuple[FlagRule, ...], Meta(description="Asked in order; the first that counts decides.", max_length=RULES_MAX)
    ] = ()
    enabled: Annotated[bool, Meta(description="False: everybody gets `otherwise`.")] = True
    description: str = ""
    place: Given = ""

    def problems(self, written: Collection[str]) -> Problems:
        """Variants that are named and are none."""
        if self.otherwise not in self.variants:
            yield "otherwise", f"there is no variant {self.otherwise!r}; there are {', '.join(self.variants)}"
        for rule in self.rules:
            for variant in (*rule.split, *([rule.variant] if rule.variant else ())):
                if variant not in self.variants:
                    yield "rules", f"there is no variant {variant!r}; there are {', '.join(self.variants)}"

    @property
    def reads(self) -> tuple[Read, ...]:
        """The parts of views that decide."""
        return tuple(
            Read(*read, f"{self.place}: flag {self.name!r}")
            for rule in self.rules
            if rule.conditions is not None
            for read in rule.conditions.reads
        )


FLAGS = Named(
    "flags",
    "flag",
    struct(Flag),
    "Feature flags by name.",
    "new_checkout",
    most=FLAGS_MAX,
    names=NAME,
    named="use letters, digits, - _ and ., such as new_checkout",
)


def read_flags(definitions: Definitions) -> dict[str, Flag]:
    """The declared flags by name. Problems are noted in the documents."""
    return FLAGS.read(definitions).values
