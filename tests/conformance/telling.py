"""Tells at the end of a run which stores were compared, on what, and in what they may differ.

What was compared travels with the tests' reports, because other processes may have run them.
"""

from __future__ import annotations

import pytest

COMPARED = "conformance"
"""Name of the property of a report that says with which store a test was run, and what there is to say of it."""


def print_compared(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the stores and the marks under the results, if any store was compared."""
    reports = (each for kind in ("passed", "failed") for each in terminalreporter.stats.get(kind, ()))
    told = [value for report in reports for name, value in getattr(report, "user_properties", ()) if name == COMPARED]
    if not told:
        return
    from tests.conformance.backends import BACKENDS, MARKS

    terminalreporter.section("conformance of stores")
    for backend in BACKENDS:
        said = [text for name, text in told if name == backend.name and text]
        if any(name == backend.name for name, _ in told):
            terminalreporter.line("; ".join([f"{backend.name}: {backend.runs_on}", *said]))
    terminalreporter.line(f"declared differences: {len(MARKS) or 'none'}")
    for mark in MARKS:
        terminalreporter.line(f"  declared difference of {mark.backend}: {mark.what}; {mark.why}")
