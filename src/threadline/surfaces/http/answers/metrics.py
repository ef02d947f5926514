"""Counts and durations for Prometheus, in its text format; labels never name a person."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping

from threadline.engine.counts import Counts

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "threadline_"
"""Of every name but those of `process_`, which mean the same of every program: others have requests and a log too."""
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds of the buckets of durations."""

_LABELS = {
    "outbox_depth": "dest",
    "oldest_undelivered_seconds": "dest",
    "projection_position": "name",
    "projection_lag_seconds": "name",
}
"""Labels of gauges that are not by queue."""
_Labels = tuple[str, ...]


def exposed(name: str) -> str:
    """How a metric is called outside."""
    return name if name.startswith("process_") else f"{PREFIX}{name}"


class Counter:
    """A number that only grows, per combination of labels."""

    kind = "counter"

    def __init__(self, name: str, meaning: str, labels: tuple[str, ...]) -> None:
        self.name, self.meaning, self.labels = exposed(name), meaning, labels
        self.values: dict[_Labels, int] = {}

    def add(self, values: _Labels, count: int = 1) -> None:
        """Count more of what these labels name."""
        self.values[values] = self.values.get(values, 0) + count

    def lines(self, first: str | None = None) -> Iterable[str]:
        """The samples, one a line: all, or those whose first label has this value."""
        for values, count in sorted(self.values.items()):
            if first is None or values[0] == first:
                yield f"{self.name}{_braces(zip(self.labels, values, strict=True))} {count}"


class Histogram:
    """How long something took, per combination of labels."""

    kind = "histogram"

    def __init__(self, name: str, meaning: str, labels: tuple[str, ...] = ()) -> None:
        self.name, self.meaning, self.labels = exposed(name), meaning, labels
        self.counts: dict[_Labels, list[int]] = {}
        self.sums: dict[_Labels, float] = {}

    def observe(self, seconds: float, values: _Labels = ()) -> None:
        """Take in one duration."""
        counts = self.counts.setdefault(values, [0] * (len(SECONDS) + 1))
        counts[bisect_left(SECONDS, seconds)] += 1
        self.sums[values] = self.sums.get(values, 0.0) + seconds

    def lines(self) -> Iterable[str]:
        """The samples: cumulative buckets, sum and count."""
        for values, counts in sorted(self.counts.items()):
            pairs = list(zip(self.labels, values, strict=True))
            total = 0
            for bound, count in zip((*map(str, SECONDS), "+Inf"), counts, strict=True):
                total += count
                yield f"{self.name}_bucket{_braces([*pairs, ('le', bound)])} {total}"
            yield f"{self.name}_sum{_braces(pairs)} {self.sums[values]:.6f}"
            yield f"{self.name}_count{_braces(pairs)} {total}"


class Metrics:
    """All that the server counts."""

    def __init__(self) -> None:
        self.failures_of_engines: list[dict[tuple[str, ...], int]] = []
        """The failures of policies that each engine of this server has counted, by (workspace, policy)."""
        self.counts_of_engines: list[Counts] = []
        """What each engine of this server counts itself."""
        self.policy_failures = Counter(
            "policy_failures_total", "Events about which a policy raised.", ("workspace", "policy")
        )
        self.events = Counter(
            "events_ingested_total", "Events that came in, by what became of them.", ("workspace", "source", "outcome")
        )
        self.mcp_calls = Counter("mcp_calls_total", "Calls of MCP tools.", ("tool", "outcome"))
        self.append = Histogram("append_seconds", "Time that one group commit took.")
        self.requests = Counter("http_requests_total", "Requests answered.", ("method", "route", "status"))
        self.refused = Counter("http_refused_total", "Clients refused or cut off because there was no room.", ("for",))
        self.request_seconds = Histogram("http_request_seconds", "Time from a request to its answer.", ("route",))

    def count_events(
        self, workspace: str, source: str, *, accepted: int, duplicates: int, conflicts: int, rejected: int
    ) -> None:
        """Count what became of the events of one request."""
        counts = {"accepted": accepted, "duplicate": duplicates, "conflict": conflicts, "rejected": rejected}
        for outcome, count in counts.items():
            if count:
                self.events.add((workspace, source, outcome), count)

    def text(self, gauges: Mapping[str, tuple[str, float | Mapping[str, float]]], workspace: str | None) -> str:
        """The page, with what is counted by workspace for one of them or, for None, for all.

        ``gauges`` are values of this moment: name -> (meaning, value, or values by queue or consumer).
        """
        lines = []
        failures = self.failures_of_engines
        keys = {key for failure in failures for key in failure}
        self.policy_failures.values = {key: sum(failure.get(key, 0) for failure in failures) for key in keys}
        by_workspace = (self.events, self.policy_failures, *_counters(self.counts_of_engines))
        others = (self.mcp_calls, self.append, self.requests, self.refused, self.request_seconds)
        samples = [(metric, metric.lines(workspace)) for metric in by_workspace]
        for metric, shown in [*samples, *((other, other.lines()) for other in others)]:
            lines += [f"# HELP {metric.name} {metric.meaning}", f"# TYPE {metric.name} {metric.kind}", *shown]
        for name, (meaning, value) in gauges.items():
            label = "consumer" if name.startswith("feed_consumer_") else _LABELS.get(name, "queue")
            values = (
                {"": value} if isinstance(value, int | float) else {_braces([(label, of)]): value[of] for of in value}
            )
            kind = "counter" if name.endswith("_total") else "gauge"
            lines += [f"# HELP {exposed(name)} {meaning}", f"# TYPE {exposed(name)} {kind}"]
            lines += [f"{exposed(name)}{labels} {_number(number)}" for labels, number in values.items()]
        return "\n".join(lines) + "\n"


def _counters(of_engines: Iterable[Counts]) -> list[Counter]:
    """What engines count, all of them together: after a reload the one before may still record."""
    counters: dict[str, Counter] = {}
    for counts in of_engines:
        for declared in counts.counters:
            counter = counters.setdefault(
                declared.name, Counter(declared.name, declared.meaning, ("workspace", *declared.labels))
            )
            for labels, count in [*counts.values[declared.name].items()]:
                counter.add(labels, count)
    return [counters[name] for name in sorted(counters)]


def _number(value: float) -> str:
    """All digits of it: a rate or a difference is computed from these."""
    return str(int(value)) if float(value).is_integer() else repr(value)


def _braces(pairs: Iterable[tuple[str, str]]) -> str:
    inside = ",".join(f'{name}="{_escape(value)}"' for name, value in pairs)
    return f"{{{inside}}}" if inside else ""


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
