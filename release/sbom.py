"""The software bill of materials of a release, as CycloneDX 1.6 in JSON, and the table of it in the docs."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release.parts import ROOT, Part, project, shipped_parts

PAGE = ROOT / "docs" / "supply-chain.md"
_PLACE = re.compile(r"(?<=<!-- written by `python -m release --page` -->\n).*?(?=<!-- end -->)", re.DOTALL)
_SPDX_ID = re.compile(r"[A-Za-z0-9.-]+")
_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "https://cyclonedx.org/schema/bom-1.6.schema.json")


def sbom(parts: Iterable[Part], files: Iterable[Path], made_at: int) -> bytes:
    """The document for these files of a release; ``made_at`` is in seconds. The same input makes the same bytes."""
    parts = list(parts)
    declared = project()
    version = str(declared["version"])
    own = _ref("threadline", version)
    document: dict[str, Any] = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(made_at, UTC).isoformat().replace("+00:00", "Z"),
            "lifecycles": [{"phase": "build"}],
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "threadline",
                "version": version,
                "purl": own,
                "description": declared["description"],
                "licenses": _licences((str(declared["license"]),)),
                "properties": [
                    {"name": f"threadline:sha256:{file.name}", "value": _digest(file)} for file in sorted(files)
                ],
            },
        },
        "components": [_component(part) for part in parts],
        "dependencies": list(_dependencies(own, parts)),
    }
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(_NAMESPACE, content)}"
    return (json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n").encode()


def _component(part: Part) -> dict[str, Any]:
    ref = _ref(part.name, part.pin.version)
    # One component, many files: its hashes are those that the lock lets in, so they are no `hashes` of the component.
    locked = [{"name": "threadline:lock:sha256", "value": each} for each in part.pin.hashes]
    extras = [{"name": "threadline:extra", "value": each} for each in part.extras]
    return {
        "type": "library",
        "bom-ref": ref,
        "name": part.name,
        "version": part.pin.version,
        "purl": ref,
        "scope": "optional" if part.extras else "required",
        "licenses": _licences(part.licences),
        "properties": [*extras, *locked],
    }


def _dependencies(own: str, parts: list[Part]) -> Iterator[dict[str, Any]]:
    refs = {part.name: _ref(part.name, part.pin.version) for part in parts}
    yield {"ref": own, "dependsOn": [refs[part.name] for part in parts]}
    for part in parts:
        yield {"ref": refs[part.name], "dependsOn": [refs[name] for name in part.needs]}


def _ref(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


def _licences(names: tuple[str, ...]) -> list[dict[str, Any]]:
    if len(names) == 1 and " " in names[0] and re.search(r" (AND|OR|WITH) ", names[0]):
        return [{"expression": names[0]}]
    known = all(_SPDX_ID.fullmatch(name) and name != "any-OSI" for name in names)
    return [{"license": {"id": name} if known else {"name": name}} for name in names]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


# --- the page ---------------------------------------------------------------------------------


def table(parts: Iterable[Part]) -> str:
    """What is installed, as Markdown: the parts of every installation, then those that each extra adds."""
    lines = ["| part | version | licence | comes with |", "|---|---|---|---|"]
    for part in sorted(parts, key=lambda part: (bool(part.extras), part.name)):
        extras = ", ".join(f"`{each}`" for each in part.extras) or "every installation"
        lines.append(f"| {part.name} | {part.pin.version} | {', '.join(part.licences)} | {extras} |")
    return "\n".join(["", *lines, "", ""])


def page_with(parts: Iterable[Part]) -> str:
    """The page with the table as it is now."""
    text = PAGE.read_text()
    if _PLACE.search(text) is None:
        raise SystemExit(f"{PAGE.relative_to(ROOT)} has no place for the table")
    written = table(parts)
    return _PLACE.sub(lambda _: written, text)


def rewrite_page() -> None:
    """Bring the table in the docs up to date."""
    PAGE.write_text(page_with(shipped_parts()))
