"""From files of definitions to one `FeatureSet`: what ships, what users replace or leave out, what is built on what."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

import yaml

from threadline.capabilities.definitions import Definitions, Document, Keys
from threadline.capabilities.features.definition import AGGREGATES, Currencies, Feature, FeatureSet
from threadline.capabilities.features.reading import NAME, FeatureReader
from threadline.capabilities.features.values import read_currency
from threadline.kernel.errors import InvalidValue
from threadline.kernel.limits import FEATURES_MAX
from threadline.kernel.suggestion import suggestion
from threadline.kernel.time import DAY, parse_duration
from threadline.kernel.zones import zone_names

_RATE_MAX_DIGITS = 30

_EMPTY_MAX = 10**15
"""Where nothing is known, ratios and scores compute with numbers below this: larger ones do not fit a float."""


@dataclass
class _Declared:
    """Everything found so far, over all files."""

    problems: list[str]
    features: dict[str, Feature] = field(default_factory=dict)
    shipped: set[str] = field(default_factory=set)
    disabled: dict[str, str] = field(default_factory=dict)
    currencies: Currencies = field(default_factory=Currencies)
    timezone: str = "UTC"
    ignored_after: int = 7 * DAY
    places: dict[str, str] = field(default_factory=dict)
    """Where users declared what may be declared once only."""


def load_definitions(paths: Iterable[str | Path] = ()) -> FeatureSet:
    """The shipped features with what these files, or all ``*.yaml`` and ``*.yml`` in these folders, declare.

    Any section that is not of features is an error. Raises `InvalidDefinition` with every problem, one a line.
    """
    return _alone(Definitions.load(paths))


def read_definitions(texts: Iterable[tuple[str, str]] = ()) -> FeatureSet:
    """As `load_definitions`, from pairs of a name for messages and the text."""
    return _alone(Definitions(texts))


def _alone(definitions: Definitions) -> FeatureSet:
    features = read_features(definitions)
    definitions.refuse_unknown()
    return features


def read_features(definitions: Definitions) -> FeatureSet:
    """The shipped features with what these definitions declare. Problems are noted in them, not raised."""
    declared = _Declared(definitions.problems)
    ours = Definitions.shipped("threadline.capabilities.features")
    _read(ours, declared)
    ours.refuse()
    declared.shipped = set(declared.features)
    declared.places.clear()
    _read(definitions, declared)
    ordered = _ordered(declared)
    if len(ordered) > FEATURES_MAX:
        declared.problems.append(
            f"{len(ordered)} features are declared, at most {FEATURES_MAX} are allowed; remove some"
        )
    return FeatureSet(tuple(ordered), declared.currencies, declared.timezone, declared.ignored_after)


def _read(definitions: Definitions, declared: _Declared) -> None:
    for document, _, value in definitions.section("features"):
        _read_features(document, value, declared)
    for section, read in _SECTION_READERS.items():
        for document, key, value in definitions.section(section):
            if document.once(key, f"section {section!r}", declared.places):
                read(document, value, declared)


def _read_features(document: Document, node: yaml.Node, declared: _Declared) -> None:
    for name, (key, value) in document.mapping(node, "`features`").items():
        if not NAME.fullmatch(name):
            document.fail(
                key, f"{name!r} is not a valid feature name; use lower-case letters, digits and _, such as spend_30d"
            )
            continue
        if not document.once(key, f"feature {name!r}", declared.places):
            continue
        if document.literal(value) is False:
            _disable(document, key, name, declared)
            continue
        reader = FeatureReader(document)
        reader.read(name, value)
        for inner in ("numerator", "denominator"):
            # What a replaced ratio had in place goes with it.
            declared.features.pop(f"{name}.{inner}", None)
        declared.features.update((feature.name, feature) for feature in reader.features)


def _disable(document: Document, key: yaml.Node, name: str, declared: _Declared) -> None:
    if name not in declared.shipped:
        document.fail(
            key, f"feature {name!r} does not ship and cannot be left out; {suggestion(name, declared.shipped)}"
        )
        return
    for each in (name, f"{name}.numerator", f"{name}.denominator"):
        declared.features.pop(each, None)
    declared.disabled[name] = document.place(key)


def _read_currencies(document: Document, node: yaml.Node, declared: _Declared) -> None:
    keys = document.mapping(node, "`currencies`")
    document.known(keys, ("total_in", "default", "rates"), "`currencies`")
    total_in = _currency(document, keys, "total_in")
    rates: dict[str, str] = {}
    if "rates" in keys:
        if not total_in:
            document.fail(keys["rates"][0], "`rates` need a currency to convert into; add `total_in: USD`")
        for code, (key, value) in document.mapping(keys["rates"][1], "`rates`").items():
            if read_currency(code) != code or not code:
                document.fail(key, f"{code!r} is not a currency code; write one in capitals, such as EUR")
            elif code == total_in:
                document.fail(key, f"1 {code} is 1 {code}; remove the line")
            else:
                rates[code] = _rate(document, value, code, total_in)
    declared.currencies = Currencies(total_in, _currency(document, keys, "default"), rates)


def _currency(document: Document, keys: Keys, key: str) -> str:
    if key not in keys:
        return ""
    code = document.text(keys[key][1], f"`{key}`")
    if code and read_currency(code) != code:
        document.fail(keys[key][1], f"{code!r} is not a currency code; write one in capitals, such as USD")
    return code


def _rate(document: Document, node: yaml.Node, code: str, total_in: str) -> str:
    # The text as it stands: a float would not be the number that was written.
    text = node.value if isinstance(node, yaml.ScalarNode) else ""
    try:
        rate = Decimal(text)
    except InvalidOperation:
        rate = Decimal(0)
    if rate.is_finite() and rate > 0 and len(text) <= _RATE_MAX_DIGITS and abs(rate.adjusted()) < _RATE_MAX_DIGITS:
        return text.replace("_", "")
    document.fail(
        node, f'the rate of {code} must be a decimal above 0: how many {total_in} 1 {code} is, such as "1.08"'
    )
    return "1"


def _read_timezone(document: Document, node: yaml.Node, declared: _Declared) -> None:
    name = document.text(node, "`timezone`")
    if name not in zone_names():
        document.fail(node, f"{name!r} is not a time zone; write an IANA name such as Europe/Rome")
    declared.timezone = name or "UTC"


def _read_campaigns(document: Document, node: yaml.Node, declared: _Declared) -> None:
    keys = document.mapping(node, "`campaigns`")
    document.known(keys, ("ignored_after",), "`campaigns`")
    if "ignored_after" in keys:
        text = document.text(keys["ignored_after"][1], "`ignored_after`")
        try:
            declared.ignored_after = parse_duration(text)
        except InvalidValue as error:
            document.fail(keys["ignored_after"][1], f"`ignored_after`: {error}")


_SECTION_READERS = {"currencies": _read_currencies, "timezone": _read_timezone, "campaigns": _read_campaigns}


def _ordered(declared: _Declared) -> list[Feature]:
    """The features, each after those it is built on; what is unknown or goes round in circles is a problem."""
    ordered: dict[str, Feature] = {}
    failed: set[str] = set()

    def visit(feature: Feature, path: tuple[str, ...]) -> None:
        if feature.name in ordered or feature.name in failed:
            return
        if feature.name in path:
            failed.add(feature.name)
            circle = " → ".join((*path[path.index(feature.name) :], feature.name))
            declared.problems.append(
                f"{feature.place}: features are built on each other in a circle: {circle}; break it"
            )
            return
        for name in feature.needs:
            needed = declared.features.get(name)
            problem = _unfit(feature, name, declared)
            if problem or needed is None:
                declared.problems.append(problem)
                failed.add(feature.name)
            else:
                visit(needed, (*path, feature.name))
        ordered[feature.name] = feature

    for name in sorted(declared.features):
        visit(declared.features[name], ())
    return list(ordered.values())


def _unfit(feature: Feature, name: str, declared: _Declared) -> str:
    """Why a feature cannot be built on another, with the place of what is wrong; empty if it can."""
    owner, place = feature.name.split(".")[0], feature.place
    if name in declared.disabled:
        return (
            f"{place}: feature {owner!r} needs {name!r}, which {declared.disabled[name]} leaves out; "
            f"leave out {owner!r} as well, or declare it anew"
        )
    needed = declared.features.get(name)
    if needed is None:
        known = [each.name for each in declared.features.values() if not each.hidden and each.name != owner]
        return f"{place}: feature {owner!r} is built on {name!r}, which is not declared; {suggestion(name, known)}"
    if AGGREGATES[needed.aggregate].reads == "scalar":
        return (
            f"{place}: feature {owner!r} is built on {name!r}, which need not be a number; build it on a count or a sum"
        )
    if isinstance(needed.empty, str) or abs(needed.empty or 0) >= _EMPTY_MAX:
        return (
            f"{needed.empty_place}: feature {owner!r} is built on {name!r}, and computes with its `empty`; "
            f"write a {'' if isinstance(needed.empty, str) else 'smaller '}number or null"
        )
    return ""
