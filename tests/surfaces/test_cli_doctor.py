"""``threadline doctor`` on the clock: one that cannot be right, and a Python whose waits end by it."""

from __future__ import annotations

import sysconfig
from typing import Any

import pytest

from tests.surfaces.cli_stage import call, composed
from threadline.kernel.time import parse_time
from threadline.surfaces.cli import doctor

__all__ = ["call", "composed"]


@pytest.mark.parametrize(
    ("platform", "built_with", "expected"), [("linux", 1, "ok"), ("linux", None, "note"), ("darwin", None, "ok")]
)
def test_doctor_says_that_a_python_waits_by_the_clock(
    platform: str,
    built_with: int | None,
    expected: str,
    call: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    built = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda n: built_with if n == "HAVE_SEM_CLOCKWAIT" else built(n))
    monkeypatch.setattr(doctor.sys, "platform", platform)
    [line] = [line for line in call("doctor").out.splitlines() if line.split()[1:2] == ["clock"]]
    assert line.split()[0] == expected


def test_doctor_finds_a_clock_of_1970_at_fault(
    call: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "system_clock", lambda: parse_time("1970-01-01T00:00:07Z"))
    told = call("doctor")
    assert (told.code, "cannot be right" in told.out) == (1, True)
