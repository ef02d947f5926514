"""Personal data in answers, masked for callers to whom it was not granted, by what each field declares of itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeGuard, Union, get_args, get_origin, get_type_hints

import msgspec

from threadline.kernel.disclosure import (
    DECLARED_IN_SCHEMA,
    NAMES,
    Disclosure,
    Shown,
    by_default,
    declared,
    inner_schema,
    shown_within,
    shows_value,
)
from threadline.kernel.identity import IdentityRules

_EMAIL = re.compile(r"[^\s@<>\"',;:()\[\]]+@[^\s@<>\"',;:()\[\]]+\.[^\W\d_]{2,}")
_PHONE = re.compile(r"\+\d[\d ()./-]{6,}\d")
_IP = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|(?<![\w:])(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}(?![\w:])")
_FORMS = ((_EMAIL, "[email]"), (_PHONE, "[phone]"), (_IP, "[ip]"))
MASK = "[masked]"
_VALUE_LENGTH_MIN = 3
_QUOTED = re.compile(r"(?<!\w)'(?:[^'\\]|\\.)+'(?!\w)|\"(?:[^\"\\]|\\.)+\"")
_SUGGESTED = "did you mean "
_STEP_VALUES = frozenset({"actual", "expected"})
"""Members of a condition's step that are values of its `field`."""
_NOTHING = Disclosure("nothing")


class Masker:
    """Masks answers of operations by the types of their results."""

    def __init__(self, shown: Shown, rules: IdentityRules) -> None:
        self._shown = shown
        self._rules = rules

    def masked(self, value: Any, type: Any, params: Mapping[str, Any]) -> Any:
        """An answer as plain data, of a result of this type, with what is personal in it replaced.

        A text that was masked in one field is masked wherever else the answer repeats it, but for ids and names.
        ``params`` are those of the call.
        """
        work = _Work(self._shown, self._rules, params)
        made = work.value(value, type, None)
        return work.without_repeated(made)

    def error(self, content: Mapping[str, Any], arguments: Any) -> dict[str, Any]:
        """An error with what it quotes masked, unless the caller has is_shown it."""
        own = frozenset(_texts_in(arguments))
        return {name: _sentence(text, own) if isinstance(text, str) else text for name, text in content.items()}


class _Work:
    """The masking of one answer."""

    def __init__(self, shown: Shown, rules: IdentityRules, params: Mapping[str, Any]) -> None:
        self._shown = shown
        self._rules = rules
        self._params = params
        self._own = frozenset(_texts_in(params))
        self._masked: set[str] = set()

    def value(self, value: Any, hint: Any, disclosure: Disclosure | None) -> Any:
        """A value of a type; ``disclosure``: what was declared of it, or of what it is in."""
        if disclosure is not None:
            return self._disclosed(value, disclosure, {})
        if isinstance(value, dict):
            struct = _struct_of(hint, value)
            if struct is not None:
                return self._struct(value, struct)
            inner = _element_of(hint, dict)
            if inner is not None:
                # The keys are the names of what the values are, and shown.
                return {_formed(name): self.value(element, inner, None) for name, element in value.items()}
        elif isinstance(value, list):
            return [self.value(element, _element_of(hint, list), None) for element in value]
        return self._nothing(value) if _may_hold_text(hint) else value

    def _struct(self, value: dict[str, Any], struct: type) -> dict[str, Any]:
        members = _members(struct)
        made = {}
        for name, element in value.items():
            hint, disclosure = members.get(name, (Any, _NOTHING))
            if disclosure is None:
                made[name] = self.value(element, hint, None)
            else:
                made[name] = self._disclosed(element, disclosure, value)
        return made

    def _disclosed(self, value: Any, disclosure: Disclosure, beside: Mapping[str, Any]) -> Any:
        if disclosure.shows == "everything":
            return _formed(value)
        if disclosure.shows == "nothing":
            return self._nothing(value)
        if disclosure.shows == "values":
            return _each_text(value, lambda text: text if text in disclosure.values or not text else MASK)
        if disclosure.shows == "identifiers":
            kind = beside.get(disclosure.named_by)
            return self._identifiers(value) if kind is None else self._identifier(kind, value)
        if disclosure.shows == "sentence":
            return _each_text(value, lambda text: _sentence(text, self._own))
        return self._data(value, disclosure, beside)

    def _data(self, value: Any, disclosure: Disclosure, beside: Mapping[str, Any]) -> Any:
        type = disclosure.type
        if disclosure.type_by:
            type = beside.get(disclosure.type_by, self._params.get(disclosure.type_by, ""))
        besides = disclosure.names | self._shown.of_type(type)
        if isinstance(value, str) and value in disclosure.values:
            return value
        if disclosure.named_by:
            return self._of_path(value, beside.get(disclosure.named_by, ""), type, besides)
        if disclosure.asked_by:
            asked = self._params.get(disclosure.asked_by)
            return self._of_path(value, asked, type, besides) if asked else _formed(value)
        return self._free(value, self._shown.schema(type), besides)

    def _of_path(self, value: Any, path: Any, type: str, besides: frozenset[str]) -> Any:
        """A value of what a path names; of several paths the one that shows least counts."""
        shown = [self._shown.path(str(name), type, besides) for name in (path if isinstance(path, list) else [path])]
        if isinstance(value, dict) and not all(shown):
            return MASK  # here its keys are values as well
        if False in shown:
            return self._nothing(value)
        return self._named(value, {}, besides) if all(shown) else self._free(value, {}, besides)

    def _free(self, value: Any, schema: Mapping[str, Any], besides: frozenset[str]) -> Any:
        if isinstance(value, list):
            return [self._free(element, schema, besides) for element in value]
        if not isinstance(value, dict):
            return _formed(value) if shows_value(value, schema) else self._nothing(value, words=False)
        return {
            _formed(name): self._member(name, element, value, inner_schema(schema, name), besides)
            for name, element in value.items()
        }

    def _member(
        self, name: str, value: Any, beside: Mapping[str, Any], schema: Mapping[str, Any], besides: frozenset[str]
    ) -> Any:
        """A member of free data, of this schema."""
        if name in _STEP_VALUES and "field" in beside:
            return self._of_path(value, beside["field"], "", besides)
        is_shown = self._shown.name(name, schema, besides)
        if is_shown is None and "." in name:  # what a rule has read goes by paths
            return self._of_path(value, name, "", besides)
        if is_shown is False:
            return self._nothing(value)
        if is_shown and DECLARED_IN_SCHEMA in schema:
            return _formed(value)
        besides |= shown_within(name)
        return self._named(value, schema, besides) if is_shown else self._free(value, schema, besides)

    def _named(self, value: Any, schema: Mapping[str, Any], besides: frozenset[str]) -> Any:
        """A value whose name says that it is shown: text, or a list of texts. Objects in it have names of their own."""
        if isinstance(value, list):
            return [self._named(element, schema, besides) for element in value]
        return self._free(value, schema, besides) if isinstance(value, dict) else _formed(value)

    def _identifiers(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._identifiers(element) for element in value]
        if isinstance(value, dict):
            return {self._identifiers(name): self._identifiers(element) for name, element in value.items()}
        if not isinstance(value, str):
            return value
        kind, colon, text = value.partition(":")
        return f"{kind}:{self._identifier(kind, text)}" if colon else _formed(value)

    def _identifier(self, kind: str, value: Any) -> Any:
        masked = _formed(value)
        # One that has its form is masked with it, which says more.
        return self._nothing(value) if masked == value and self._rules.kind(kind).is_personal else masked

    def _nothing(self, value: Any, *, words: bool = True) -> Any:
        """Masked through and through; what is empty or a truth value stays."""
        if isinstance(value, dict):
            return {_formed(name): self._nothing(element, words=words) for name, element in value.items()}
        if isinstance(value, list):
            return [self._nothing(element, words=words) for element in value]
        if value is None or isinstance(value, bool) or value == "":
            return value
        if isinstance(value, str):
            self._masked.update((value, *value.split()) if words else (value,))
        return MASK

    def without_repeated(self, value: Any) -> Any:
        """An answer without the texts that were masked in some field of it."""
        repeated = sorted((text for text in self._masked if len(text) >= _VALUE_LENGTH_MIN), key=len, reverse=True)
        if not repeated:
            return value
        again = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in repeated), re.I)

        def shown(value: Any) -> Any:
            if isinstance(value, dict):
                return {
                    name: element if name in NAMES and isinstance(element, str) else shown(element)
                    for name, element in value.items()
                }
            if isinstance(value, list):
                return [shown(element) for element in value]
            return again.sub(MASK, value) if isinstance(value, str) else value

        return shown(value)


class _Member(NamedTuple):
    hint: Any
    disclosure: Disclosure | None


@lru_cache(maxsize=1_000)
def _members(struct: type) -> Mapping[str, _Member]:
    """The fields of a struct by the names that an answer has, and what each declares."""
    hints = get_type_hints(struct, include_extras=True)
    members = {}
    for field in msgspec.structs.fields(struct):
        disclosure = declared(hints[field.name])
        if disclosure is None and not _holds_structs(hints[field.name]):
            disclosure = by_default(struct, field.name)
        members[field.encode_name] = _Member(hints[field.name], disclosure)
    return members


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _alternatives(hint: Any) -> Iterator[Any]:
    hint = _plain(hint)
    if get_origin(hint) in (Union, UnionType):
        for inside in get_args(hint):
            yield from _alternatives(inside)
    else:
        yield hint


def _struct_of(hint: Any, value: Mapping[str, Any]) -> type | None:
    """The struct of a hint that has these members; None: it names none."""
    structs = [
        option for option in _alternatives(hint) if isinstance(option, type) and issubclass(option, msgspec.Struct)
    ]
    return max(structs, key=lambda struct: len(value.keys() & _members(struct).keys()), default=None)


def _is_struct(hint: Any) -> TypeGuard[type[msgspec.Struct]]:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _element_of(hint: Any, of: type) -> Any:
    """The type of what is in a list or, under a name, in an object; None: nothing says so."""
    for option in _alternatives(hint):
        origin, inside = get_origin(option), get_args(option)
        if of is dict and origin is dict:
            return inside[1]
        if of is list and origin in (list, tuple):
            return inside[0]
    return None


def _may_hold_text(hint: Any) -> bool:
    """Whether a value that is no struct, list or object may be text that nobody has listed."""
    return not all(
        option in (int, float, bool, type(None)) or get_origin(option) is Literal for option in _alternatives(hint)
    )


def undeclared(answer: Any) -> Iterator[str]:
    """The fields of an answer that can hold text and do not say whether it is personal, as ``Struct.field``."""
    yield from _undeclared(answer, getattr(answer, "__name__", str(answer)), set())


def _undeclared(hint: Any, place: str, seen: set[type]) -> Iterator[str]:
    if declared(hint) is not None:
        return
    for option in _alternatives(hint):
        if _is_struct(option):
            for name, member in _members(option).items() if option not in seen else ():
                seen.add(option)
                if member.disclosure is None:
                    yield from _undeclared(member.hint, f"{option.__name__}.{name}", seen)
        elif get_origin(option) in (list, tuple):
            yield from _undeclared(_element_of(option, list), place, seen)
        elif get_origin(option) is dict and _holds_structs(option):
            yield from _undeclared(_element_of(option, dict), place, seen)
        elif _may_hold_text(option):
            yield place


def _holds_structs(hint: Any) -> bool:
    """Whether there are structs in it, which say themselves what they are."""
    return any(_is_struct(option) or any(map(_holds_structs, get_args(option))) for option in _alternatives(hint))


def _each_text(value: Any, shown: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {shown(name): _each_text(element, shown) for name, element in value.items()}
    if isinstance(value, list):
        return [_each_text(element, shown) for element in value]
    return shown(value) if isinstance(value, str) else value


def _formed(value: Any) -> Any:
    """A value without what has the form of an e-mail address, a phone number or an IP address."""
    return _each_text(value, _without_forms)


def _without_forms(text: str) -> str:
    for form, mask in _FORMS:
        text = form.sub(mask, text)
    return text


def _sentence(text: str, own: frozenset[str]) -> str:
    """Words of ours without what they quote, unless it is the caller's own or a suggestion."""

    def quoted(match: re.Match[str]) -> str:
        is_suggested = text.startswith(_SUGGESTED, match.start() - len(_SUGGESTED))
        return match[0] if is_suggested or match[0][1:-1] in own else f"{match[0][0]}{MASK}{match[0][0]}"

    return _without_forms(_QUOTED.sub(quoted, text))


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, element in value.items():
            yield str(name)
            yield from _texts_in(element)
    elif isinstance(value, list):
        for element in value:
            yield from _texts_in(element)
    elif isinstance(value, str):
        yield value
