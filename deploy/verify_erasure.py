#!/usr/bin/env python3
"""Verifies certificates of erasures, with nothing but Python's standard library: it shares no code with Threadline.

    python verify_erasure.py --url https://threadline.example --token TOKEN
    python verify_erasure.py --ledger shop.db-erasures.jsonl --store shop.db

It checks that each certificate names the hash of the one before, that numbers have no gap, that nothing was left, that
the ids of the erased events have the digest that is certified; with a ledger file also the signatures; with an embedded
store also that none of these events has content. It exits with 1 if anything is amiss.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import hmac
import json
import os
import sqlite3
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

Certificate = dict[str, Any]
Found = list[tuple[Certificate, list[str] | None]]
"""Certificates, and the ids of the events of each where they are known."""


def canonical(value: Any) -> bytes:
    """The bytes of a JSON value in the form of RFC 8785; certificates hold no fractions."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
        members = (canonical(name) + b":" + canonical(value[name]) for name in names)
        return b"{" + b",".join(members) + b"}"
    if isinstance(value, list):
        return b"[" + b",".join(map(canonical, value)) + b"]"
    return json.dumps(value, ensure_ascii=False).encode()


def of_server(url: str, token: str, with_ids: bool) -> Found:
    """What a server answers for the workspace of a token."""
    found: Found = []
    cursor = ""
    while True:
        page = asked(url, token, f"/v1/erasures?limit=100&cursor={urllib.parse.quote(cursor)}")
        for erasure in page["erasures"]:
            if erasure["state"] == "done":
                ids = asked(url, token, f"/v1/erasures/{erasure['id']}/ids")["ids"] if with_ids else None
                found.append((erasure["certificate"], ids))
        cursor = page["next"]
        if not cursor:
            return found


def asked(url: str, token: str, path: str) -> Any:
    """An answer of a server."""
    if not url.startswith(("http://", "https://")):
        raise SystemExit(f"{url} is not an http address")
    request = urllib.request.Request(url.rstrip("/") + path, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)
    except OSError as error:
        raise SystemExit(f"{url} does not answer: {error}; the token needs the scope admin") from None


def of_ledger(path: str) -> tuple[Found, list[bytes]]:
    """What a ledger file has, and the keys in it."""
    found: Found = []
    keys = []
    with open(path, encoding="utf-8") as file:
        for line in map(json.loads, file):
            if "key" in line:
                keys.append(bytes.fromhex(line["key"]))
            else:
                packed = base64.b64decode(line.get("ids", ""))
                found.append((line["certificate"], [packed[at : at + 16].hex() for at in range(0, len(packed), 16)]))
    return found, keys


def faults(found: Found, keys: list[bytes]) -> Iterator[str]:
    """What is wrong with certificates."""
    by_workspace: dict[str, list[Certificate]] = {}
    for certificate, ids in found:
        name = f"erasure {certificate['erasure']}"
        by_workspace.setdefault(certificate["workspace"], []).append(certificate)
        if left := {kind: count for kind, count in certificate["after"].items() if count}:
            yield f"{name}: it says itself that something was left: {left}"
        if ids is not None:
            if hashlib.sha256("".join(sorted(ids)).encode()).hexdigest() != certificate["events_digest"]:
                yield f"{name}: the ids of its events are not those that are certified"
            if len(ids) != certificate["events"]:
                yield f"{name}: {certificate['events']} events are certified, and there are {len(ids)} ids"
        if keys:
            plain = canonical({**certificate, "signature": ""})
            if not any(hmac.digest(key, plain, "sha256").hex() == certificate["signature"] for key in keys):
                yield f"{name}: its signature is not of this ledger's keys"
    for workspace, certificates in by_workspace.items():
        yield from chain_faults(workspace, sorted(certificates, key=lambda each: int(each["sequence"])))


def chain_faults(workspace: str, certificates: list[Certificate]) -> Iterator[str]:
    """Where the certificates of a workspace do not follow one another."""
    before, number = "", 0
    for certificate in certificates:
        name, number = f"erasure {certificate['erasure']}", number + 1
        if certificate["sequence"] != number:
            yield f"{name}: it is number {certificate['sequence']} of {workspace!r}, and {number} is missing"
            number = certificate["sequence"]
        elif certificate["previous"] != before:
            yield f"{name}: the certificate before it in {workspace!r} is another than it names"
        before = hashlib.sha256(canonical(certificate)).hexdigest()


def store_faults(path: str, found: Found) -> Iterator[str]:
    """Events of these erasures that an embedded store has content of."""
    erased = {bytes.fromhex(id): certificate["erasure"] for certificate, ids in found for id in ids or ()}
    if not os.path.exists(path):
        raise SystemExit(f"there is no store at {path}")
    db = sqlite3.connect(f"file:{urllib.parse.quote(path)}?mode=ro", uri=True)
    try:
        seen = set()
        for id, thread, size in db.execute("SELECT id, thread, length(body) FROM log"):
            if id in erased:
                seen.add(id)
                if size or thread.strip(b"\0"):
                    yield f"erasure {erased[id]}: event {id.hex()} has content in {path}"
        for id in sorted(erased.keys() - seen):
            yield f"erasure {erased[id]}: event {id.hex()} is not in {path}, so it could be sent again"
    finally:
        db.close()


def main() -> int:
    """Verify what is named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="a server; its token needs the scope admin")
    parser.add_argument("--token", default=os.environ.get("THREADLINE_TOKEN", ""))
    parser.add_argument("--ledger", help="a ledger file, as it lies beside a store or `erasures export` writes it")
    parser.add_argument("--store", help="an embedded store")
    given = parser.parse_args()
    if not given.url and not given.ledger:
        parser.error("name a server, a ledger file, or both")
    of_file, keys = of_ledger(given.ledger) if given.ledger else ([], [])
    of_url = of_server(given.url, given.token, with_ids=True) if given.url else []
    wrong = [*faults(of_file, keys), *faults(of_url, keys)]
    if given.ledger and given.url:
        known = {certificate["erasure"]: canonical(certificate) for certificate, _ in of_file}
        for certificate, _ in of_url:
            if known.get(certificate["erasure"]) != canonical(certificate):
                wrong.append(f"erasure {certificate['erasure']}: the server and the ledger file do not say the same")
    if given.store:
        wrong += store_faults(given.store, of_file or of_url)
    sys.stderr.writelines(f"{each}\n" for each in wrong)
    sys.stdout.write(f"{len(of_file or of_url)} certificates, {len(wrong)} faults\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FileNotFoundError as error:
        raise SystemExit(f"there is no file {error.filename}") from None
