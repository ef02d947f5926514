"""An export of many people into a bucket of S3, on MiniStack."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

from tests.capabilities.test_exports import PEOPLE, World
from tests.exports.test_lake_storage import bucket
from tests.servers.s3 import s3


def test_an_export_into_a_bucket_has_the_files_that_its_manifest_names(tmp_path: Path) -> None:
    world, storage = World(tmp_path), bucket("exports", s3())
    world.engine.exports = lambda: storage
    assert world.start().params["to"] == "s3://exports/a lake/ä"
    world.work()
    manifest = json.loads(storage.read("default/export.1/manifest.json"))
    lines = 0
    for file in manifest["files"]:
        content = storage.read(f"default/export.1/{file['name']}")
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
        lines += len(gzip.decompress(content).splitlines())
    assert lines == manifest["people"] + manifest["events"]
    assert manifest["people"] == PEOPLE
    names = {each.name.removeprefix("default/export.1/") for each in storage.list()}
    assert names == {"manifest.json", *(file["name"] for file in manifest["files"])}
