"""Alerts over HTTP: kept answers by ETag, and the addresses for browsers."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.surfaces.appaction_stage import as_user, events, ux
from tests.surfaces.conftest import Clock, Keys
from tests.surfaces.operations_stage import PROBLEM, record
from threadline.engine.engine import Engine
from threadline.kernel.time import HOUR, format_time

__all__ = ["ux"]

OF_ONE = "/v1/people/user_id:1/alerts"
OF_USER = "/ux/user/alerts"


def write(client: TestClient, keys: Keys, id: str = "sale", **content: Any) -> None:
    answer = client.post(f"/v1/alerts/{id}", json={"title": id, **content}, headers=keys.bearer("admin"))
    assert answer.status_code == 200, answer.text


def test_writing_takes_the_scope_admin_and_reading_the_scope_read(client: TestClient, keys: Keys) -> None:
    assert client.post("/v1/alerts/sale", json={"title": "x"}, headers=keys.bearer("writer")).status_code == 403
    assert client.get("/v1/alerts", headers=keys.bearer("writer")).status_code == 403
    write(client, keys)
    assert client.get("/v1/alerts", headers=keys.bearer("read")).json()["alerts"][0]["state"] == "active"
    assert client.get("/v1/alerts", headers=keys.bearer("stranger")).json()["alerts"] == []


def test_an_answer_is_kept_until_it_would_be_another_one(
    client: TestClient, keys: Keys, engine: Engine, clock: Clock
) -> None:
    record(engine)
    tags: list[str] = []

    def has_changed() -> bool:
        known = {"If-None-Match": tags[-1]} if tags else {}
        answer = client.get(OF_ONE, headers={**keys.bearer("read"), **known})
        assert answer.headers["cache-control"] == "private, no-cache"
        if answer.status_code == 304:
            assert (answer.content, answer.headers["etag"]) == (b"", tags[-1])
            return False
        assert answer.status_code == 200
        assert answer.headers["etag"] != (tags[-1] if tags else "")
        tags.append(answer.headers["etag"])
        return True

    assert has_changed()
    assert not has_changed()
    write(client, keys, stop=format_time(clock.now + HOUR))
    assert has_changed()
    write(client, keys, "vips", tags=["vip"])
    record(engine, key="k2")
    clock.now += 1
    assert not has_changed(), "neither an alert for others nor an event changes what this person sees"
    client.post("/v1/people/user_id:1/tags", json={"add": ["vip"]}, headers=keys.bearer("admin"))
    clock.now += 1
    assert has_changed()
    client.post(f"{OF_ONE}/vips/dismiss", json={}, headers=keys.bearer("admin"))
    clock.now += 1
    assert has_changed()
    assert tags[3] == tags[1], "the answer is the one from before"
    clock.now += HOUR
    assert has_changed(), "it is over by time alone"


@pytest.mark.parametrize("given", ["*", "{tag}", "W/{tag}", '"other", {tag}', '"a,b",W/{tag}'])
def test_a_tag_that_is_known_is_found_in_any_list(client: TestClient, keys: Keys, engine: Engine, given: str) -> None:
    record(engine)
    tag = client.get(OF_ONE, headers=keys.bearer("read")).headers["etag"]
    for method in ("GET", "HEAD"):
        headers = {**keys.bearer("read"), "If-None-Match": given.format(tag=tag)}
        assert client.request(method, OF_ONE, headers=headers).status_code == 304


@pytest.mark.parametrize("given", ['"other"', "", "{bare}", '"x{bare}"', 'W/"'])
def test_another_tag_gets_the_answer(client: TestClient, keys: Keys, engine: Engine, given: str) -> None:
    record(engine)
    bare = client.get(OF_ONE, headers=keys.bearer("read")).headers["etag"].strip('"')
    headers = {**keys.bearer("read"), "If-None-Match": given.format(bare=bare)}
    assert client.get(OF_ONE, headers=headers).status_code == 200


def test_a_csv_of_alerts_has_a_tag_of_its_own(client: TestClient, keys: Keys, engine: Engine) -> None:
    record(engine)
    write(client, keys)
    plain = client.get(OF_ONE, headers=keys.bearer("read"))
    table = client.get(
        OF_ONE, headers={**keys.bearer("read"), "Accept": "text/csv", "If-None-Match": plain.headers["etag"]}
    )
    assert (table.status_code, table.text.splitlines()[1].split(",")[0]) == (200, "sale")


def test_a_user_sees_and_dismisses_alerts_before_anything_is_known_of_them(
    ux: TestClient, keys: Keys, engine: Engine, clock: Clock
) -> None:
    write(ux, keys)
    write(ux, keys, "closed", severity="critical", dismissable=False)
    answer = ux.get(OF_USER, headers=as_user(clock))
    assert [each["id"] for each in answer.json()["alerts"]] == ["closed", "sale"]
    assert answer.headers["access-control-allow-origin"] == "*"
    assert "etag" in answer.headers["access-control-expose-headers"]
    known = {**as_user(clock), "If-None-Match": answer.headers["etag"]}
    assert ux.get(OF_USER, headers=known).status_code == 304
    assert ux.post(f"{OF_USER}/sale/dismiss", headers=as_user(clock)).json()["receipt"]["status"] == "accepted"
    clock.now += 1
    assert ux.post(f"{OF_USER}/sale/dismiss", headers=as_user(clock)).json()["receipt"]["status"] == "duplicate"
    assert [each["id"] for each in ux.get(OF_USER, headers=known).json()["alerts"]] == ["closed"]
    assert [
        each["id"] for each in ux.get(f"{OF_USER}?dismissed=true&severity=info", headers=known).json()["alerts"]
    ] == ["sale"]
    assert [each.event.type for each in events(engine, "user_id:42")] == ["alert_dismissed"]
    assert ux.get(OF_USER, headers=as_user(clock, "43")).json()["alerts"][1]["id"] == "sale"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", f"{OF_USER}?id=user_id:1", 400),
        ("GET", f"{OF_USER}?severity=fatal", 400),
        ("GET", f"{OF_USER}?severity=info&severity=info", 400),
        ("POST", f"{OF_USER}/nothing/dismiss", 404),
        ("POST", f"{OF_USER}/closed/dismiss", 409),
        ("POST", f"{OF_USER}/%2F/dismiss", 400),
    ],
)
def test_what_a_user_may_not_ask_is_a_problem(
    ux: TestClient, keys: Keys, clock: Clock, method: str, path: str, status: int
) -> None:
    write(ux, keys, "closed", dismissable=False)
    answer = ux.request(method, path, headers=as_user(clock))
    assert (answer.status_code, answer.headers["content-type"]) == (status, PROBLEM)


def test_alerts_of_users_take_a_web_token(ux: TestClient, keys: Keys, client: TestClient, clock: Clock) -> None:
    for headers in ({}, keys.bearer("admin"), {"Authorization": "Basic eDp5"}):
        assert ux.get(OF_USER, headers=headers).status_code == 401
    assert client.get(OF_USER, headers=as_user(clock)).status_code == 401
