"""A client in Python that a generator of others makes of the OpenAPI document: the whole API is in it, and it works."""

from __future__ import annotations

import re
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import httpx
import pytest

from tests.clients.server import Server

pytestmark = [pytest.mark.client, pytest.mark.slow]

PACKAGE = "client_of_the_document"
LEFT_OUT = {
    "/ux/appaction",  # its body is a type and a demand on one of its fields, which the generator cannot join
    "/v1/people/{id}/export",  # its answer is a ZIP file
}
PUBLIC = re.compile(r"within public\.")
"""Pages for people who follow a link in a mail; their answers are of any kind."""


@pytest.fixture(scope="module")
def generated(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What the generator printed; the client can be imported."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(httpx.get(f"{server.url}/openapi.json").content)
    program = Path(sys.executable).with_name("openapi-python-client")
    command = [program, "generate", "--path", "openapi.json", "--output-path", PACKAGE, "--meta", "none"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield ran.stdout + ran.stderr


def of(module: str, name: str) -> Any:
    """A name of the generated package."""
    return getattr(import_module(f"{PACKAGE}.{module}"), name)


def members(kind: Any) -> tuple[Any, ...]:
    """The types of a union, or the one that there is."""
    return get_args(kind) or (kind,)


def test_nothing_of_the_api_is_left_out_of_it(generated: str) -> None:
    warnings = [line for line in generated.splitlines() if line.startswith("WARNING") and not PUBLIC.search(line)]
    assert {re.findall(r"parsing \w+ (\S+)", line)[0] for line in warnings} == LEFT_OUT
    assert "Unable to p" not in generated


def test_its_calls_record_and_read(generated: str, server: Server) -> None:
    client = of("client", "AuthenticatedClient")(base_url=server.url, token=server.token)
    event = {"type": "order", "key": "generated-1", "identifiers": {"user_id": "generated"}, "properties": {"total": 5}}
    body = of("models.record_body", "RecordBody").from_dict({"events": [event]})
    recorded = of("api.events.record", "sync")(client=client, body=body)
    assert (recorded.accepted, recorded.receipts[0].status) == (1, "accepted")
    person = of("api.people.person", "sync")("user_id:generated", client=client)
    assert person.id == recorded.receipts[0].person
    page = of("api.people.people_list", "sync")(client=client, limit=1)
    assert len(page.people) == 1


def test_its_calls_send_batches_with_a_write_key(generated: str, server: Server) -> None:
    key = b64encode(f"{server.write_key}:".encode()).decode()
    client = of("client", "AuthenticatedClient")(base_url=server.url, token=key, prefix="Basic")
    batch = [{"type": "track", "event": "x", "userId": "generated", "messageId": "generated-2"}]
    for path in ("v1_batch", "v1_import", "v1_b", "b", "beacon_v1_batch"):
        send = of(f"api.segment.segment_{path}", "sync")
        [kind] = [each for each in members(get_type_hints(send)["body"]) if hasattr(each, "from_dict")]
        assert send(client=client, body=kind.from_dict({"batch": batch})).success, path


def test_a_problem_is_one_of_its_types(generated: str, server: Server) -> None:
    client = of("client", "AuthenticatedClient")(base_url=server.url, token=server.token)
    problem = of("api.people.person", "sync")("user_id:nobody-of-the-generated", client=client)
    assert (type(problem).__name__, problem.status, problem.code) == ("Problem", 404, "not_found")
