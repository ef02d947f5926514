"""What a setting needs that is not installed is named by `check` and when a server starts, all of it at once."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.surfaces.cli_stage import call, composed
from threadline.kernel.errors import InvalidSetting
from threadline.settings import Settings
from threadline.settings.parts import PARTS, lacking, refuse_lacking

__all__ = ["call", "composed"]

GIVEN: dict[str, Any] = {
    "cache": "redis://localhost",
    "jwt_secret": "x" * 64,
    "jwt_keys": "https://issuer.example/keys",
    "tracing": True,
    "lake": "s3://bucket/lake",
    "iceberg_warehouse": "s3://bucket/tables",
    "exports": "s3://bucket/exports",
    "ingestion_queue": "https://sqs.eu-west-1.amazonaws.com/1/in",
    "memory_queue": "https://sqs.eu-west-1.amazonaws.com/1/memory",
    "feature_queue": "https://sqs.eu-west-1.amazonaws.com/1/features",
}


def without_extras(monkeypatch: pytest.MonkeyPatch) -> None:
    modules = {part.module for part in PARTS}
    found = sys.modules["threadline.kernel.extra"].find_spec
    monkeypatch.setattr("threadline.kernel.extra.find_spec", lambda name: None if name in modules else found(name))


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        *(({name: value}, {name}) for name, value in GIVEN.items()),
        ({"store": "postgresql://localhost/x"}, {"store"}),
        ({"store": "dynamodb:table"}, {"store"}),
        ({"store": "shop.db", "exports": "folder"}, set()),
        (GIVEN, set(GIVEN)),
    ],
)
def test_each_part_that_a_setting_lacks_is_named_with_its_extra(
    given: dict[str, Any], parts: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lacking(Settings(**given)) == []
    without_extras(monkeypatch)
    sentences = lacking(Settings(**given))
    assert {sentence.split("`")[1] for sentence in sentences} == parts
    assert all("pip install '.[" in sentence for sentence in sentences)
    if parts:
        with pytest.raises(InvalidSetting, match=r"needs .*; install its extra"):
            refuse_lacking(Settings(**given))


def test_check_names_what_the_settings_lack_and_exits_1(
    call: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THREADLINE_CACHE", "redis://localhost")
    assert "0 mistakes" in call("check").out
    without_extras(monkeypatch)
    done = call("check")
    assert done.code == 1
    assert "the setting `cache` needs redis; install its extra" in " ".join(done.out.split())
