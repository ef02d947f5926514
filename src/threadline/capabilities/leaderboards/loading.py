"""From the section ``leaderboards`` of files of definitions to `Boards`."""

from __future__ import annotations

from collections.abc import Iterable

import yaml

from threadline.capabilities.definitions import Definitions, Document, Keys
from threadline.capabilities.features.definition import number_path
from threadline.capabilities.features.reading import NAME
from threadline.capabilities.leaderboards.definition import ALL, KEPT, BoardDefinition, Boards
from threadline.capabilities.points import read_points
from threadline.capabilities.segments.definition import read_segments
from threadline.kernel.limits import BOARD_ROWS_PER_PERSON_MAX
from threadline.kernel.suggestion import suggestion

KEYS = ("description", "per", "periods", "score", "segments", "tags")
LEDGER_SCORES = ("balance", "earned")
_TAG_LENGTH_MAX = 100


def read_boards(definitions: Definitions) -> Boards:
    """The boards that are declared; problems are noted in the definitions, not raised."""
    boards: dict[str, BoardDefinition] = {}
    for document, _, value in definitions.section("leaderboards"):
        for name, (key, node) in document.mapping(value, "`leaderboards`").items():
            if not NAME.fullmatch(name):
                document.fail(key, f"{name!r} is not a valid leaderboard name; use lower-case letters, digits and _")
            elif name in boards:
                document.fail(key, f"leaderboard {name!r} is already declared at {boards[name].place}; keep one")
            else:
                boards[name] = _board(document, name, key, node)
    if any(board.segments for board in boards.values()):
        _check_segments(definitions, boards.values())
    points = read_points(definitions) if boards else None
    for board in boards.values():
        if board.of_ledger and points is None:
            definitions.problems.append(
                f"{board.place}: leaderboard {board.name!r} ranks points, which are switched off"
            )
    rows = sum(board.rows_max for board in boards.values())
    if rows > BOARD_ROWS_PER_PERSON_MAX:
        definitions.problems.append(
            f"{next(iter(boards.values())).place}: the leaderboards may keep {rows} rows of one person, "
            f"at most {BOARD_ROWS_PER_PERSON_MAX} are allowed; days, weeks and months take 2 each, all time 1, "
            "and all of them again for `per`, for every tag and every segment: leave out what nobody looks at"
        )
    return Boards(tuple(boards[name] for name in sorted(boards)), "UTC" if points is None else points.timezone)


def _check_segments(definitions: Definitions, boards: Iterable[BoardDefinition]) -> None:
    """Note the segments that boards name and nobody declares."""
    declared = [segment.name for segment in read_segments(definitions) or ()]
    for board in boards:
        for name in sorted(set(board.segments) - set(declared)):
            hint = suggestion(name, declared) if declared else "none is declared"
            text = f"{board.place}: leaderboard {board.name!r}: there is no segment {name!r}; {hint}"
            definitions.problems.append(text)


def _board(document: Document, name: str, key: yaml.Node, node: yaml.Node) -> BoardDefinition:
    what = f"leaderboard {name!r}"
    keys = document.mapping(node, what)
    document.known(keys, KEYS, what)
    path = _path(document, keys, key, what)
    periods = _texts(document, keys, "periods", what) or [ALL]
    for period in periods:
        if period not in KEPT:
            document.fail(keys["periods"][1], f"{what}: unknown period {period!r}; {suggestion(period, KEPT)}")
    if path != ("points", "earned") and periods != [ALL]:
        document.fail(keys["periods"][0], f"{what}: only points.earned has periods; the others rank current values")
    if "per" in keys and document.literal(keys["per"][1]) == "tag":
        document.fail(keys["per"][1], f"{what}: `per` names a trait; for tags write `tags: [vip]`")
    tags = _texts(document, keys, "tags", what)
    if any(len(tag) > _TAG_LENGTH_MAX for tag in tags):
        document.fail(keys["tags"][1], f"{what}: a tag that is ranked has at most {_TAG_LENGTH_MAX} characters")
    segments = _texts(document, keys, "segments", what)
    per = document.text(keys["per"][1], f"`per` of {what}") if "per" in keys else ""
    if segments and per == "segment":
        document.fail(keys["per"][1], f"{what}: a trait called 'segment' and `segments` cannot be told apart; keep one")
    return BoardDefinition(
        name=name,
        path=path,
        periods=tuple(period for period in KEPT if period in periods) or (ALL,),
        per=per,
        tags=tuple(dict.fromkeys(tags)),
        segments=tuple(dict.fromkeys(segments)),
        description=document.text(keys["description"][1], f"`description` of {what}") if "description" in keys else "",
        place=document.place(key),
    )


def _path(document: Document, keys: Keys, key: yaml.Node, what: str) -> tuple[str, ...]:
    if "score" not in keys:
        document.fail(key, f"{what} needs a `score`, such as points.earned, streaks.daily.current or features.<name>")
        return ("points", "earned")
    node = keys["score"][1]
    path = number_path(document.text(node, f"`score` of {what}"))
    if path[0] == "points" and (len(path) != 2 or path[1] not in LEDGER_SCORES):
        document.fail(node, f"{what}: points are ranked by points.earned or by points.balance")
        return ("points", "earned")
    if len(path) < 2 or not all(path):
        document.fail(node, f"{what}: `score` names no number; write it like features.monetary_total")
        return ("points", "earned")
    return path


def _texts(document: Document, keys: Keys, key: str, what: str) -> list[str]:
    if key not in keys:
        return []
    node = keys[key][1]
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    return [document.text(each, f"`{key}` of {what}") for each in nodes]
