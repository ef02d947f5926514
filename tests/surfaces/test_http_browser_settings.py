"""What browser clients download before they send, and a write key in the query."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from tests.surfaces.conftest import Keys
from tests.surfaces.segment_stage import basic, track


def test_rudderstack_is_told_of_a_source_without_destinations(client: TestClient, keys: Keys) -> None:
    for given in ({"headers": basic(keys.write)}, {"params": {"writeKey": keys.write, "p": "cdn", "v": "3.34.1"}}):
        answer = client.get("/sourceConfig/", **given)  # type: ignore[arg-type]  # one of two
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
        source = answer.json()["source"]
        assert (source["id"], source["config"], source["destinations"]) == ("shop", {}, [])
    assert client.get("/sourceConfig/", params={"writeKey": "wk_none"}).status_code == 401


@pytest.mark.parametrize(
    ("told", "scheme"), [(None, "http"), ("https", "https"), ("HTTPS, http", "https"), ("x", "http")]
)
def test_an_error_behind_a_proxy_that_ends_tls_names_the_address_that_the_client_wrote(
    told: str | None, scheme: str, client: TestClient
) -> None:
    headers = {"host": "shop.example"} | ({} if told is None else {"x-forwarded-proto": told})
    problem = client.get("/v1/people", headers=headers).json()
    assert problem["type"] == f"{scheme}://shop.example/docs#error-unauthorized"


@pytest.mark.parametrize(
    ("headers", "host", "protocol"),
    [
        ({}, "testserver", "http"),
        ({"host": "events.shop.example"}, "events.shop.example", "http"),
        ({"host": "localhost:8787", "x-forwarded-proto": "https"}, "localhost:8787", "https"),
    ],
)
def test_segment_is_told_to_send_where_it_asked(
    headers: dict[str, str], host: str, protocol: str, client: TestClient, keys: Keys
) -> None:
    answer = client.get(f"/v1/projects/{keys.write}/settings", headers=headers)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "*")
    own = answer.json()["integrations"]["Segment.io"]
    assert own == {"apiKey": keys.write, "apiHost": f"{host}/v1", "protocol": protocol}
    for none in ("wk_none", keys.read, keys.admin):
        assert client.get(f"/v1/projects/{none}/settings").status_code == 404


def test_a_browser_may_ask_and_send_from_any_page(client: TestClient) -> None:
    asked = {"Origin": "https://shop.example", "Access-Control-Request-Headers": "authorization, sentat"}
    for method, path in (("GET", "/sourceConfig/"), ("GET", "/v1/projects/x/settings"), ("POST", "/beacon/v1/batch")):
        preflight = client.options(path, headers={**asked, "Access-Control-Request-Method": method})
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert method in preflight.headers["access-control-allow-methods"].split(", ")


@pytest.mark.parametrize("path", ["/beacon/v1/batch", "/v1/batch", "/v1/track"])
def test_a_write_key_in_the_query_is_enough(path: str, client: TestClient, keys: Keys) -> None:
    body = track("m") if path == "/v1/track" else {"batch": [track("m")]}
    answer = client.post(path, params={"writeKey": keys.write}, json=body)
    assert answer.json()["accepted"] == 1
    assert client.post(path, params={"writeKey": "wk_none"}, json=body).status_code == 401
