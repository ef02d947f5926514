"""An operation: one declaration of something a caller can ask, rendered alike by every surface.

An endpoint, command, method and tool at once: the HTTP route with its OpenAPI document, the command of the terminal,
the method of the Python client, the field of GraphQL and the tool of agents follow from one value.

    >>> import msgspec
    >>> from threadline.kernel.operation import Context, Params, operation
    >>> class Name(Params):
    ...     name: str
    >>> class Greeting(msgspec.Struct):
    ...     text: str
    >>> @operation("GET /v1/greet/{name}")
    ... def greet(context: Context, params: Name) -> Greeting:
    ...     '''Greet somebody.'''
    ...     return Greeting(f"hello {params.name}")
    >>> greet.name, greet.summary, greet.run(None, Name(name="ada")).text
    ('greet', 'Greet somebody.', 'hello ada')

Options: ``scope`` (what a token must hold), ``group`` (the noun that operations share), ``choices`` and ``needs``
(which parameters go together), ``shown_on`` (surfaces), ``is_long`` (work that shares few threads), ``intake`` (it
records events), ``guarded``, ``audited`` and ``private`` (the audit log).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from inspect import cleandoc
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    Protocol,
    TypedDict,
    TypeVarTuple,
    Unpack,
    cast,
    get_args,
    get_type_hints,
)

import msgspec

from threadline.kernel.applied import IndexPart
from threadline.kernel.chart import Chart
from threadline.kernel.event import Event, Receipt, marks_of
from threadline.kernel.policy import PolicyView, Read
from threadline.kernel.ports import Person, Ports
from threadline.kernel.rejected import RejectedEntry
from threadline.kernel.typed import prepared
from threadline.kernel.why import DEFINITIONS, REFRESH, Why

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # that of Python 3.13, whose defaults let `Operation` alone name any of them

    P = TypeVar("P", bound=msgspec.Struct, default=Any)
    R = TypeVar("R", default=Any)
else:
    from typing import TypeVar

    P, R = TypeVar("P"), TypeVar("R")

Surface = Literal["http", "cli", "python"]
COLUMNS = msgspec.Meta(extra={"columns": True})
"""Marks an object in the entries of a list whose members are columns of their own in CSV and Parquet."""
JSON_TEXT = msgspec.Meta(extra={"json": True})
"""Marks a text that is JSON, as it has to be in a query: elsewhere callers may give the object itself."""
EVENT_TYPE = msgspec.Meta(extra={"event_type": True})
"""Marks a text that is a type of events, or a step of an analysis, which begins with one: pages show its name."""
BY_EVENT_TYPE = msgspec.Meta(extra={"event_type": "by"})
"""Marks a text that is one where the parameter `by` is left out or is ``event.type``."""
SECRET = msgspec.Meta(extra={"secret": True})
"""Marks a text that the command line asks for and takes from no argument, which everybody on the machine could read."""
ASIDE = msgspec.Meta(extra={"aside": True})
"""Marks a part of an answer that the command line shows only where it is asked for by its name."""
Method = Literal["GET", "POST", "DELETE"]
Scope = Literal["write", "read", "admin"]
Work = Literal["read", "question", "write", "upkeep"]
"""Classes of calls, each with a bounded share of a server, so that none waits for another: short reads, reads that take
the longer the more there is in the store, short writes, and long ones."""


class Context(Protocol):
    """What an operation is handed: whose data, at what instant, and the ports of the engine."""

    @property
    def engine(self) -> Ports:
        """The ports; see `threadline.kernel.ports`."""
        ...

    @property
    def workspace(self) -> str:
        """The workspace of the caller."""
        ...

    @property
    def now(self) -> int:
        """The instant to read at, after everything recorded so far; what is recorded bears ``engine.recorder.clock()``.
        See `threadline.kernel.time`."""
        ...

    @property
    def source(self) -> str:
        """The name of the credential that asks: the source of what it records, and the author of what it changes."""
        ...

    @property
    def source_type(self) -> str:
        """What its events are: ``external`` if it asks over a wire, whatever its name."""
        ...


@dataclass(frozen=True, slots=True)
class Inspection:
    """Something that `verify` checks besides the states of people. Found by discovery, like operations."""

    name: str
    inspect: Callable[[Ports], Iterator[str]]
    """Yields every fault that it finds in the engine's store, in words; it reads everything and writes nothing."""


@dataclass(frozen=True, slots=True)
class RefreshPart:
    """What decides whom a `Refresh` finds for one thing declared, such as a segment."""

    version: str
    """Changes with its own definition."""
    reads: tuple[Read, ...] = ()
    """The parts of views that decide it: with the definitions of these it has to be filled again as well."""


@dataclass(frozen=True, slots=True)
class Refresh:
    """What a change of definitions asks for about everybody once states are folded again. Found by discovery."""

    name: str
    """What is refreshed, e.g. ``segments``."""
    fingerprint: str
    """Changes with the definitions that ask for it."""
    page: Callable[[Ports, str, int], tuple[int, str]]
    """(engine, after, limit) -> how many people were looked at, and after what to go on; empty: that was everybody.
    Of people of every workspace. Who is up to date already is passed over."""
    parts: Mapping[str, RefreshPart] = field(default_factory=dict)
    """By name, each thing declared that readers ask for by itself. The rows of a projection of the same name belong to
    it too."""
    foretold: bool = False
    """Whether it may cause something that is sent, so that a page of it is rehearsed before definitions are applied."""
    event: str = ""
    """Type of the event in a person's thread by which they are looked at. Its property `PARTS` may list names of
    `parts`: then it is about these."""
    lacks: Callable[[PolicyView, Collection[str]], bool] = lambda known, parts: False
    """Whether a person's events do not say yet what these parts, and no others, say of them now."""


PARTS = "parts"
"""Property of the event of a `Refresh`: what of it is looked at; left out: everything."""
BEFORE = "before"
"""Property of the event of a `Refresh`: the instant before which it looks, microseconds; left out: it looks at the
present. What turns from then on is for the timers that are due, for their reason is another one."""


def first_due(timers: Mapping[str, int], policy: str, now: int) -> int | None:
    """When the first timer of a policy was due that has not fired yet, by what is known of a person's timers; None:
    there is none."""
    return min((due for name, due in timers.items() if due <= now and name.split("/")[1] == policy), default=None)


def refresh_reason(engine: Ports, name: str) -> Why:
    """Why everybody is looked at again by the refresh of this name."""
    return DEFINITIONS if name in engine.maintenance.stale() else REFRESH


def refresh_request(
    engine: Ports,
    refresh: tuple[str, str],
    person: Person,
    why: Why,
    parts: Collection[str] | None,
    due: int | None,
) -> Event:
    """The event by which a `Refresh`, by its name and the type of its event, looks at parts of a person; None: at all
    of them. ``due``: the instant before which it looks."""
    name, type = refresh
    asked = {} if parts is None else {PARTS: sorted(parts)}
    return Event(
        type=type,
        identifiers=(person.identifiers[person.id],),
        occurred_at=engine.recorder.clock(),
        # At one position of the person it is one request, which moves the position.
        key=f"{name}/{person.id}/{person.position}",
        source=f"threadline.{name}",
        source_type="internal",
        workspace=person.workspace,
        properties=asked if due is None else {**asked, BEFORE: due},
        marks=marks_of(why),
    )


def _never(result: Any) -> bool:
    return False


def always(params: Any) -> bool:
    """Whatever the parameters are."""
    return True


def _nothing(params: Any) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Intake:
    """What a surface must know of an operation that takes events in, to limit their rate and to count them."""

    events: Callable[[Context, Any], Sequence[Event | RejectedEntry]]
    """The new events that a call would record, and what it would keep of those that are none; raises what the call
    would raise."""
    member: str = ""
    """The parameter that lists the events; empty: a call brings one. What is wrong with one of a list is its own
    outcome, even that it is not JSON."""
    without: Callable[[Any, Collection[int]], Any] | None = None
    """The parameters without the events at these positions. Set with `member`; else a call is refused as a whole."""
    receipts: Callable[[Any], list[Receipt]] | None = None
    """The receipts in the result, one for each event. Set with `member`."""
    result: Callable[[list[Receipt]], Any] | None = None
    """The result of these receipts. Set with `member`."""


@dataclass(frozen=True, slots=True)
class Group:
    """The noun that operations share: `segments` in ``threadline segments members`` and ``shop.segments.members()``."""

    name: str
    """In the plural where it is a list of things."""
    summary: str
    """What a stranger finds in it, in one line that ends with a full stop."""


class Params(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What the parameters of an operation extend, so that one that it does not have is refused instead of ignored."""


class NoParams(Params):
    """Nothing to choose."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Parameters of which a call gives at most one, or exactly one where that is ``required``."""

    names: tuple[str, ...]
    required: bool = False

    def __str__(self) -> str:
        *others, last = (f"`{name}`" for name in self.names)
        return f"give {'one' if self.required else 'at most one'} of {', '.join(others)} and {last}"


@dataclass(frozen=True, slots=True)
class Operation(Generic[P, R]):
    """``run(context, params) -> result``; params and result are msgspec Structs, so JSON Schema follows. A function is
    declared as one by `operation`, and may still be called as the function that it was.

    ``path`` has the names of path parameters in braces; other fields of ``params`` travel in the query
    (GET, DELETE) or in the JSON body (POST). On the command line a path parameter is an argument and the
    rest are options. ``scope`` is what a token must hold.
    """

    name: str
    """With a group: the group's name, an underscore and the verb, such as `segments_members`."""
    summary: str
    """One line, imperative, ends with a full stop."""
    params: type
    result: Any
    run: Callable[[Context, P], R]
    method: Method
    path: str
    group: Group | None = None
    """None: it stands beside the groups, as `record` and `person` do."""
    scope: Scope = "read"
    shown_on: frozenset[Surface] = frozenset({"http", "cli", "python"})
    status: int = 200
    example: Any = None
    """Parameters of a sensible call, shown in the API's documentation."""
    choices: tuple[Choice, ...] = ()
    """Which parameters exclude each other."""
    needs: tuple[tuple[str, str], ...] = ()
    """A parameter, and another one without which it says nothing."""
    refused: Callable[[Any], bool] = _never
    """Whether a result says that nothing was done, or that something checked is not as it should be: the command then
    exits with 1."""

    relies_on: tuple[str, ...] = ()
    """What it reads that is written for everybody beforehand: ``people``, for their states, or names of a `Refresh`. An
    answer says so while that is older than the definitions in force."""
    relied_on: Callable[[Any], tuple[IndexPart, ...]] | None = None
    """What of ``relies_on`` a call with these parameters reads; None: all of it."""
    revalidated: bool = False
    """Whether callers may keep an answer and ask later if it is still the same (ETag); the same question then has the
    same answer, byte for byte, until what it depends on changes."""
    intake: Intake | None = None
    """Set where callers give it events to record."""
    ended: Callable[[Any], bool] | None = None
    """Set where a result changes by itself until it is final, which this tells of one: HTTP streams such results as
    server-sent events, at the path and ``/events``."""
    media_type: str = ""
    """Set where the result is a stream of this type: then `result` is bytes, and `run` returns them in pieces, which
    surfaces pass on as they come. What it raises before the first piece is the answer."""
    picture: Callable[[Any], Chart] | None = None
    """Set where a result can be drawn: its picture. Pure."""
    guarded: Callable[[Any], str] = _nothing
    """Why a call with these parameters needs a token with the scope admin, whatever ``scope`` says; empty: it does
    not."""

    is_long: Callable[[Any], bool] = _never
    """Whether a call with these parameters takes the longer the more there is in the store, beyond a page of answers,
    or whether its parameters alone can be work for a second. Such calls share few threads of a server."""

    audited: bool = True
    """False for one that needs more than to read and yet only tries something, or brings news of people, which the
    log of events has anyway."""
    done: tuple[str, ...] = ()
    """What a call of it was, for the audit log, with names of parameters in braces: ``Created the account {name}``. The
    first counts of which a call has everything; without one the summary does."""
    tool: str = ""
    """The tool of agents that calls it and the choice by which it does, as ``list_definitions flags``: for an operation
    of a capability that the tools themselves do not name."""
    private: frozenset[str] = frozenset()
    """Parameters that the audit log must not have: secrets, and what somebody wrote."""

    def __post_init__(self) -> None:
        if self.group is not None and not self.name.startswith(f"{self.group.name}_"):
            raise ValueError(
                f"operation {self.name!r} of the group {self.group.name!r}: expected {self.group.name}_VERB"
            )
        prepared(self.params)
        prepared(self.result)

    def __call__(self, context: Context, params: P) -> R:
        """Its result, for another operation that begins or ends with this one."""
        return self.run(context, params)

    @property
    def is_audited(self) -> bool:
        """Whether a call is noted in the audit log."""
        return self.audited and self.method != "GET" and self.scope != "read" and self.intake is None

    def work(self, params: Any) -> Work:
        """The class of a call with these parameters."""
        if self.method == "GET" or self.scope == "read":
            return "question" if self.is_long(params) else "read"
        return "upkeep" if self.is_long(params) else "write"

    @property
    def verb(self) -> str:
        """The name within the group."""
        return self.name if self.group is None else self.name.removeprefix(f"{self.group.name}_")


class Options(TypedDict, total=False):
    """The fields of an `Operation` that its function does not say, and mostly need not be given."""

    scope: Scope
    shown_on: frozenset[Surface]
    status: int
    example: Any
    choices: tuple[Choice, ...]
    needs: tuple[tuple[str, str], ...]
    refused: Callable[[Any], bool]
    relies_on: tuple[str, ...]
    relied_on: Callable[[Any], tuple[IndexPart, ...]]
    revalidated: bool
    intake: Intake
    ended: Callable[[Any], bool]
    media_type: str
    picture: Callable[[Any], Chart]
    guarded: Callable[[Any], str]
    is_long: Callable[[Any], bool]
    audited: bool
    done: tuple[str, ...]
    tool: str
    private: frozenset[str]


def operation(
    route: str, group: Group | None = None, **options: Unpack[Options]
) -> Callable[[Callable[[Context, P], R]], Operation[P, R]]:
    """Declare a function of a context and parameters as the operation that it is; a decorator.

    ``route`` is the method and the path. The function's name is the verb (``list_`` is ``list``: an underscore at the
    end only avoids a word of the language), the first paragraph of its docstring the summary. What ``params`` and the
    result are annotated with is what surfaces read and render; where a ``media_type`` is given that is a stream of
    bytes.
    """

    def declare(function: Callable[[Context, P], R]) -> Operation[P, R]:
        return _declared(function, function, route, group, options)

    return declare


Declared = TypeVarTuple("Declared")
ShapedParams = TypeVar("ShapedParams", bound=msgspec.Struct)
ShapedResult = TypeVar("ShapedResult")


@dataclass(frozen=True, slots=True)
class ShapedOperation(Generic[*Declared, ShapedParams, ShapedResult]):
    """An operation once it is called with what the users' definitions declare, as a capability's ``declare`` does."""

    function: Callable[[Unpack[Declared], Context, ShapedParams], ShapedResult]
    route: str
    group: Group | None
    options: Options

    def __call__(self, *declared: *Declared) -> Operation[ShapedParams, ShapedResult]:
        """The operation by what is declared."""

        @wraps(self.function)
        def run(context: Context, params: ShapedParams) -> ShapedResult:
            return self.function(*declared, context, params)

        return _declared(self.function, run, self.route, self.group, self.options)


def shaped_operation(
    route: str, group: Group | None = None, **options: Unpack[Options]
) -> Callable[
    [Callable[[Unpack[Declared], Context, ShapedParams], ShapedResult]],
    ShapedOperation[*Declared, ShapedParams, ShapedResult],
]:
    """Like `operation`, for a function whose first parameters are what the users' definitions declare."""

    def declare(
        function: Callable[[Unpack[Declared], Context, ShapedParams], ShapedResult],
    ) -> ShapedOperation[*Declared, ShapedParams, ShapedResult]:
        return ShapedOperation(function, route, group, options)

    return declare


def _declared(
    function: Callable[..., R], run: Callable[[Context, P], R], route: str, group: Group | None, options: Options
) -> Operation[P, R]:
    """The operation that a function is; it runs by ``run``."""
    verb = function.__name__.removesuffix("_")
    name = verb if group is None else f"{group.name}_{verb}"
    method, _, path = route.partition(" ")
    if method not in get_args(Method) or not path.startswith("/"):
        raise ValueError(f"operation {name!r}: {route!r} is no route; expected for instance 'GET /v1/people/{{id}}'")
    hints = get_type_hints(function, include_extras=True)
    if not function.__doc__ or not {"params", "return"} <= hints.keys():
        without = "; python -OO takes docstrings away" if sys.flags.optimize > 1 else ""
        missing = "expected a docstring, and annotations of `params` and the result"
        raise ValueError(f"operation {name!r}: {missing}{without}")
    paragraph, _, _ = cleandoc(function.__doc__).partition("\n\n")
    return Operation(
        name=name,
        summary=" ".join(paragraph.split()),
        params=hints["params"],
        result=bytes if options.get("media_type") else hints["return"],
        run=run,
        method=cast(Method, method),
        path=path,
        group=group,
        **options,
    )
