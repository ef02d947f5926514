"""What holds for every test: no quiet skips, a seed, how to repeat a failure, and how hard Hypothesis tries."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from tests import repeating
from tests.conformance import telling
from tests.few_examples import try_few

SKIPS_ALLOWED: dict[str, str] = {
    "=0 leaves .* out": "Whoever runs it has said by a switch that this server cannot be had or is not wanted.",
}
"""Pattern of a skip's reason -> why even CI may skip it. Empty is the best state of this list."""

EXAMPLES = {
    "ci": 10,
    # For suites that are run once more on every store, where it is the store that is tried, and for a quick look.
    "few": 2,
    # Here alone a test that has its own number of examples tries more than the profile says.
    "torture": 40,
}
"""Profile -> how many examples Hypothesis tries of each test that draws."""
COSTLY_EXAMPLES = 3
"""How many of a test that is marked `costly`; with the profile torture as many as any other."""

for _name, _examples in EXAMPLES.items():
    # A deadline per example would fail on a busy machine and prove nothing; whole files are slow, not single examples.
    settings.register_profile(
        _name, max_examples=_examples, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
    )
PROFILE = os.environ.get("THREADLINE_TEST_PROFILE", "ci")
settings.load_profile(PROFILE)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the run's seed before Hypothesis and the workers start; both inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what runs in its background so, and every program under test would be as deaf.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # readline gives its own width of 80 to the processes after it, though nobody has said so.
    os.environ.pop("COLUMNS", None)
    os.environ["THREADLINE_TEST_SEED"] = repeating.seed()
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = os.environ["THREADLINE_TEST_SEED"]


def pytest_report_header() -> str:
    """Name the seed that the tests draw from."""
    return f"drawn from THREADLINE_TEST_SEED={os.environ['THREADLINE_TEST_SEED']}"


@pytest.fixture
def seed() -> int:
    """The run's seed, for tests that draw their own random numbers."""
    return int(os.environ["THREADLINE_TEST_SEED"])


class _Failures(logging.Handler):
    """Keeps the messages about policies that failed."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.messages.append(record.getMessage())


@pytest.fixture(autouse=True)
def _no_policy_fails(request: pytest.FixtureRequest) -> Iterator[None]:
    """A policy that fails refuses no event, so that without this no test would notice."""
    failures = _Failures()
    log = logging.getLogger("threadline.policies")
    log.addHandler(failures)
    yield
    log.removeHandler(failures)
    if request.node.get_closest_marker("policies_fail") is None:
        assert failures.messages == []


def pytest_collectstart() -> None:
    """Look for no garbage while tests are collected: hardly anything becomes some, and it took a tenth of the time."""
    gc.disable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests that draw: another seed tries something else in them. Bound how often each draws."""
    if is_hypothesis_test(getattr(item, "obj", None)) or "seed" in getattr(item, "fixturenames", ()):
        item.add_marker("drawn")
    if PROFILE != "torture" and os.environ.get("THREADLINE_TEST_CONFORMANCE") != "all":
        try_few(item, COSTLY_EXAMPLES if item.get_closest_marker("costly") else None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what was collected out of the garbage collector's work: it lasts until the end of the run."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what only the process knows that collects the results of all workers."""
    telling.print_compared(terminalreporter)
    repeating.print_repeat_lines(terminalreporter)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A test that skips where skipping is not allowed has failed; a failure says how to repeat it."""
    report = yield
    if not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    repeating.add_repeat_line(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """The same for whole files that skip while they are imported."""
    report = yield
    _refuse_skip(report)
    repeating.add_repeat_line(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.outcome != "skipped" or os.environ.get("THREADLINE_TEST_NO_SKIP") != "1":
        return
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(re.search(pattern, reason) for pattern in SKIPS_ALLOWED):
        report.outcome = "failed"
        report.longrepr = f"{reason}\nTHREADLINE_TEST_NO_SKIP=1 is set, so this skip is a failure."
