"""What holds for every test: no quiet skips, a seed that is printed, and how hard Hypothesis tries."""

from __future__ import annotations

import os
import re
import secrets
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Here, because only the hooks of this file run in the process that prints the results of all workers.
from tests.conformance.telling import pytest_terminal_summary  # noqa: F401 - pytest finds it by its name

SKIPS_ALLOWED: dict[str, str] = {
    "=0 leaves .* out": "Whoever runs it has said by a switch that this server cannot be had or is not wanted.",
}
"""Pattern of a skip's reason -> why even CI may skip it. Empty is the best state of this list."""

# A deadline per example would fail on a busy machine and prove nothing; whole files are slow, not single examples.
settings.register_profile(
    "fast", max_examples=40, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", max_examples=150, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# For suites that are run once more on every store, where it is the store that is tried, and for a quick look.
settings.register_profile(
    "few", max_examples=2, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("THREADLINE_TEST_PROFILE", "fast"))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the run's seed before Hypothesis and the workers start; both inherit it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what runs in its background so, and every program under test would be as deaf.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    seed = os.environ.setdefault("THREADLINE_TEST_SEED", str(secrets.randbelow(2**32)))
    if config.getoption("hypothesis_seed", None) is None:
        config.option.hypothesis_seed = seed


def pytest_report_header() -> str:
    """Say how to have this very run again."""
    return f"to repeat this run: THREADLINE_TEST_SEED={os.environ['THREADLINE_TEST_SEED']}"


@pytest.fixture
def seed() -> int:
    """The run's seed, for tests that draw their own random numbers; a failing run prints it in its header."""
    return int(os.environ["THREADLINE_TEST_SEED"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """A test that skips where skipping is not allowed has failed."""
    report = yield
    if not hasattr(report, "wasxfail"):
        _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """The same for whole files that skip while they are imported."""
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.outcome != "skipped" or os.environ.get("THREADLINE_TEST_NO_SKIP") != "1":
        return
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not any(re.search(pattern, reason) for pattern in SKIPS_ALLOWED):
        report.outcome = "failed"
        report.longrepr = f"{reason}\nTHREADLINE_TEST_NO_SKIP=1 is set, so this skip is a failure."
