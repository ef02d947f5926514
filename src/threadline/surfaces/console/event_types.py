"""Types of events in the answers of analyses and in their pictures, under the names that they have on every page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from threadline.kernel.chart import Chart, Flow, Point, Series
from threadline.kernel.operation import BY_EVENT_TYPE, EVENT_TYPE
from threadline.surfaces.console.sentences import step_name
from threadline.surfaces.operation_calls import metas_of

BY_TYPE = ("", "event.type")
"""What `by` is where a break-down is by the type of events."""


def names_in(result: type, answer: Mapping[str, Any], by: str) -> dict[str, str]:
    """Each type of events that stands in an answer, and what it is called. Two that would be called the same keep their
    own names."""
    members = typed_members(result, by)
    types = dict.fromkeys(type for type in _texts(answer, members) if type)
    return distinct({type: step_name(type) for type in types})


def typed_members(result: type, by: str) -> frozenset[str]:
    """The members of an answer, and of the entries of its lists, in which types of events stand."""
    marked = _marked(result)
    return frozenset(name for name, mark in marked.items() if mark == EVENT_TYPE or by in BY_TYPE)


@lru_cache(maxsize=100)
def _marked(struct: type) -> Mapping[str, msgspec.Meta]:
    marked: dict[str, msgspec.Meta] = {}
    for name, hint in get_type_hints(struct, include_extras=True).items():
        marks = [meta for meta in metas_of(hint) if meta in (EVENT_TYPE, BY_EVENT_TYPE)]
        marked |= {name: marks[0]} if marks else {}
        listed = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        if (
            get_origin(listed) is list
            and isinstance(row := get_args(listed)[0], type)
            and issubclass(row, msgspec.Struct)
        ):
            marked |= _marked(row)
    return marked


def _texts(answer: Mapping[str, Any], members: frozenset[str]) -> Iterator[str]:
    for name, value in answer.items():
        if name in members and isinstance(value, str):
            yield value
        elif isinstance(value, list):
            for row in value:
                yield from _texts(row, members) if isinstance(row, Mapping) else ()


def distinct(names: Mapping[str, str]) -> dict[str, str]:
    """The names, without those that several things would have: a picture would take these for one."""
    counts = Counter(names.values())
    return {key: name for key, name in names.items() if counts[name] == 1}


def renamed(chart: Chart, names: Mapping[str, str]) -> Chart:
    """A picture with other names for what it shows; the name that something had is shown where somebody points at its
    mark."""
    return msgspec.structs.replace(
        chart,
        series=tuple(_series(series, names) for series in chart.series),
        flows=tuple(
            Flow(flow.step, names.get(flow.source, flow.source), names.get(flow.target, flow.target), flow.value)
            for flow in chart.flows
        ),
    )


def _series(series: Series, names: Mapping[str, str]) -> Series:
    return Series(names.get(series.name, series.name), tuple(_point(point, names) for point in series.points))


def _point(point: Point, names: Mapping[str, str]) -> Point:
    if not isinstance(point.x, str) or point.x not in names:
        return point
    note = " · ".join(filter(None, (point.note, point.x)))
    return msgspec.structs.replace(point, x=names[point.x], note=note)


def suggested(types: Sequence[str]) -> list[dict[str, str]]:
    """Types of events as a field offers them: what is filled in, and what it is called."""
    return [{"value": type, "text": step_name(type)} for type in types]
