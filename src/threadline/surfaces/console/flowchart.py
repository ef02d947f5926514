"""A journey as a picture: boxes from top to bottom, arrows between them, and how many people went where."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from threadline.capabilities.reach.journeys.outline import ADD

WIDE, HIGH = 224, 58
"""Of a box; its height at least."""
LINE_HIGH = 17
APART, EMPTY_WIDE = 28, 150
"""Between two columns, and the width of a way on which there is no step."""
GAP, LABELED_GAP = 66, 94
"""Between two boxes, and where arrows between them have room for what they say."""
POINT, POINT_GAP = 28, 30
"""Height and width of a point at which a step may be put in, and what is between it and a box."""
BEND = 26
"""How far below a box its arrows turn, and above the next one they come together."""
EDGE = 16
LOSS = 96
"""Room beside a box for those who leave there."""
ROUND = 8
LINE_LETTERS = 27
LABEL_LETTERS, LABEL_LINES_MAX = 20, 2
START = "\0"
"""Where everybody comes from: no step is called so."""

Corner = tuple[float, float]


class Line(NamedTuple):
    """An arrow: from a step, to the next one, what decides for it, and where it runs."""

    step: str
    next: str
    when: str
    corners: list[Corner]


class Block(NamedTuple):
    """A part of the picture with its own origin. It is entered from above at ``axis``."""

    width: float
    height: float
    axis: float
    boxes: list[tuple[str, float, float]]
    """(step, the middle of its upper side)."""
    lines: list[Line]
    ends: list[Line]
    """Arrows that leave it below; their last corner is where they do, and they do not know yet where to."""
    is_point: bool = False
    """Whether it is nothing but a point."""

    def moved(self, x: float, y: float) -> Block:
        """The same elsewhere."""
        return Block(
            self.width,
            self.height,
            x + self.axis,
            [(id, x + bx, y + by) for id, bx, by in self.boxes],
            [_moved(line, x, y) for line in self.lines],
            [_moved(line, x, y) for line in self.ends],
            self.is_point,
        )


def drawn(journey: Mapping[str, Any], flow: Mapping[str, Any] | None) -> dict[str, Any]:
    """The picture: `journeys_show` says how a journey is made, `analytics_journey` what became of people in it. Of one
    that is being written, `outlined` says how it is made."""
    steps = {step["step"]: step for step in journey["steps"]}
    first = next(iter(steps), "")
    block = _sequence(steps, first, "")
    begin = _box(journey["entered_by"])
    gap = POINT_GAP if any(step["kind"] == ADD for step in journey["steps"]) else GAP
    top = EDGE + begin["high"] + gap
    block = block.moved(EDGE + max(0, WIDE / 2 - block.axis), top)
    axis, bottom = block.axis, top + block.height + gap
    lines = [Line(START, first, "", [(axis, EDGE + begin["high"]), (axis, top)]), *block.lines]
    lines += [_joined(line, "", axis, bottom) for line in block.ends]
    reached = {step["step"]: step for step in flow["steps"]} if flow else {}
    passed = {(arrow["step"], arrow["next"]): arrow["runs"] for arrow in flow["arrows"]} if flow else {}
    passed[START, first] = flow["entered"] if flow else 0
    placed = [
        {**steps[id], **_lost(reached.get(id)), **_box(steps[id]["does"]), "x": x - WIDE / 2, "y": y}
        for id, x, y in block.boxes
    ]
    boxes = [box for box in placed if box["kind"] != ADD]
    points = [{"step": id, "x": x - POINT / 2, "y": y} for id, x, y in block.boxes if steps[id]["kind"] == ADD]
    right = max([axis + WIDE / 2, *(box["x"] + WIDE + (LOSS if box["left"] else 0) for box in boxes)])
    right = max([right, *(x + EMPTY_WIDE / 2 for line in lines for x, _ in line.corners)])
    return {
        "boxes": boxes,
        "points": points,
        "arrows": [_arrow(line, passed.get(line[:2], 0) if flow else None) for line in lines],
        "width": right + EDGE,
        "height": bottom + 40 + EDGE,
        "wide": WIDE,
        "start": {**begin, "x": axis - WIDE / 2, "y": EDGE},
        "end": {"x": axis - 60, "y": bottom},
        "flow": flow,
    }


# --- where everything stands ------------------------------------------------------------------------


def _sequence(steps: Mapping[str, Mapping[str, Any]], first: str, stop: str) -> Block:
    """The steps from one on until another, below each other; the ways of a branch stand side by side."""
    parts: list[Block] = []
    while first not in ("", stop):
        step = steps[first]
        branches = len(step["ways"]) > 1
        parts.append(_branching(steps, step) if branches else _single(step))
        if _is_end(step):
            break
        first = step["joins"] if branches else step["ways"][0]["to"]
    return _stacked(parts)


def _single(step: Mapping[str, Any]) -> Block:
    is_point = step["kind"] == ADD
    wide, high = (EMPTY_WIDE, POINT) if is_point else (WIDE, _box(step["does"])["high"])
    ends = [] if _is_end(step) else [Line(step["step"], "", "", [(wide / 2, high)])]
    return Block(wide, high, wide / 2, [(step["step"], wide / 2, 0)], [], ends, is_point)


def _is_end(step: Mapping[str, Any]) -> bool:
    """Whether nobody goes on from a step; one that is being written may have others after it all the same."""
    return step["kind"] == "exit" and not step["ways"][0]["to"]


def _branching(steps: Mapping[str, Mapping[str, Any]], step: Mapping[str, Any]) -> Block:
    below = [(way, _sequence(steps, way["to"], step["joins"])) for way in step["ways"]]
    width = sum(block.width for _, block in below) + APART * (len(below) - 1)
    axis, left = max(width, WIDE) / 2, max(0.0, (WIDE - width) / 2)
    high = _box(step["does"])["high"]
    top, boxes = high + LABELED_GAP, [(step["step"], axis, 0.0)]
    lines: list[Line] = []
    ends: list[Line] = []
    for way, block in below:
        part = block.moved(left, top)
        left += block.width + APART
        begun: list[Corner] = [(axis, high), (axis, high + BEND), (part.axis, high + BEND)]
        if part.boxes:
            lines.append(Line(step["step"], way["to"], way["when"], [*begun, (part.axis, top)]))
        else:
            ends.append(Line(step["step"], "", way["when"], begun))
        boxes, lines, ends = boxes + part.boxes, lines + part.lines, ends + part.ends
    return Block(max(width, WIDE), top + max(block.height for _, block in below), axis, boxes, lines, ends)


def _stacked(parts: Sequence[Block]) -> Block:
    """Blocks below each other on one axis, with arrows to the first step of the next."""
    if not parts:
        return Block(EMPTY_WIDE, 0, EMPTY_WIDE / 2, [], [], [])
    axis = max(block.axis for block in parts)
    width = axis + max(block.width - block.axis for block in parts)
    boxes: list[tuple[str, float, float]] = []
    lines: list[Line] = []
    ends: list[Line] = []
    y = 0.0
    for before, block in pairwise([parts[0], *parts]):
        gap = 0 if not boxes else POINT_GAP if before.is_point or block.is_point else GAP
        part = block.moved(axis - block.axis, y + gap)
        lines += [*(_joined(line, part.boxes[0][0], axis, y + gap) for line in ends), *part.lines]
        boxes, ends, y = boxes + part.boxes, part.ends, y + gap + part.height
    return Block(width, y, axis, boxes, lines, ends)


def _moved(line: Line, x: float, y: float) -> Line:
    return line._replace(corners=[(x + cx, y + cy) for cx, cy in line.corners])


def _joined(line: Line, next: str, axis: float, top: float) -> Line:
    """Down its column, over to the axis right above what comes next, and there."""
    x = line.corners[-1][0]
    return line._replace(next=next, corners=[*line.corners, (x, top - BEND), (axis, top - BEND), (axis, top)])


# --- how it is drawn --------------------------------------------------------------------------------


def _arrow(line: Line, runs: int | None) -> dict[str, Any]:
    corners = [*_bends(line.corners)]
    begin, bend = corners[0], corners[1]
    # What decides stands where the ways part, the number beside it.
    x, y = (corners[2][0], bend[1]) if line.when and len(corners) > 2 else (begin[0], begin[1])
    return {
        "path": _rounded(corners),
        "when": _label(line.when),
        "why": line.when,
        "runs": runs,
        "x": x + 8,
        "y": y + 19,
        "is_empty": runs == 0,
    }


def _bends(corners: Sequence[Corner]) -> Iterator[Corner]:
    """The corners without those at which nothing turns."""
    for number, corner in enumerate(corners):
        before, after = corners[max(number - 1, 0)], corners[min(number + 1, len(corners) - 1)]
        if number in (0, len(corners) - 1) or (before[0] == corner[0]) != (corner[0] == after[0]):
            yield corner


def _rounded(corners: Sequence[Corner]) -> str:
    """A path of straight lines whose corners are round."""
    parts = [f"M{_at(corners[0])}"]
    for (before, corner), (_, after) in pairwise(pairwise(corners)):
        size = min(ROUND, *(max(abs(a[0] - corner[0]), abs(a[1] - corner[1])) / 2 for a in (before, after)))
        parts.append(f"L{_at(_towards(corner, before, size))}Q{_at(corner)} {_at(_towards(corner, after, size))}")
    return "".join([*parts, f"L{_at(corners[-1])}"])


def _towards(corner: Corner, other: Corner, size: float) -> Corner:
    def step(a: float, b: float) -> float:
        return a + max(-size, min(size, b - a))

    return step(corner[0], other[0]), step(corner[1], other[1])


def _at(corner: Corner) -> str:
    return f"{corner[0]:g} {corner[1]:g}"


def _lost(counted: Mapping[str, Any] | None) -> dict[str, Any]:
    if counted is None:
        return {"reached": 0, "left": 0, "reasons": {}}
    return {"reached": counted["reached"], "left": counted["left"], "reasons": counted["reasons"]}


def _box(text: str) -> dict[str, Any]:
    """The lines of a text in a box, how high the box is and where the first line stands in it."""
    lines = _lines(text, LINE_LETTERS)
    high = max(HIGH, LINE_HIGH * len(lines) + 24)
    return {"lines": lines, "high": high, "first": (high - LINE_HIGH * len(lines)) / 2 + 13}


def _label(text: str) -> list[str]:
    """What an arrow says, cut where there is no room for it."""
    lines = _lines(text, LABEL_LETTERS)
    if len(lines) <= LABEL_LINES_MAX:
        return lines
    return [*lines[: LABEL_LINES_MAX - 1], f"{lines[LABEL_LINES_MAX - 1]} …"]


def _lines(text: str, letters: int) -> list[str]:
    """A text in lines; a word that is longer than one goes on in the next."""
    lines: list[str] = []
    for part in text.split():
        if lines and len(lines[-1]) + len(part) < letters:
            lines[-1] += f" {part}"
        else:
            lines += [part[begin : begin + letters] for begin in range(0, len(part), letters)]
    return lines
