"""What a flag gives, to whom, what is recorded of it, and what operators see."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import DAY, Clock
from starlette.testclient import TestClient
from threadline_flags.events import FLAG_EXPOSED

import threadline
from threadline.kernel.errors import InvalidDefinition, InvalidValue, NotFound
from threadline.kernel.public_route import PublicRequest
from threadline.settings import Settings
from threadline.surfaces.http.addresses.sign_in import COOKIE
from threadline.surfaces.http.server.application import Application
from threadline.surfaces.python.embedded import Threadline

PATH = "/ofrep/v1/evaluate/flags"


def ask(shop: Threadline, key: str, flag: str = "", **context: Any) -> tuple[int, Any]:
    """The status and the answer of OFREP."""
    body = msgspec.json.encode({"context": {"targetingKey": key, **context}})
    return asked(shop, body, flag)


def asked(shop: Threadline, body: bytes, flag: str = "", headers: dict[str, str] | None = None) -> tuple[int, Any]:
    engine = shop.engine
    [route] = [route for route in engine.catalogue.public_routes if route.path == PATH + ("/{key}" if flag else "")]
    request = PublicRequest({"key": flag} if flag else {}, {}, headers or {}, body, engine.now(), "POST")
    answer = route.answer(engine, request)
    return answer.status, msgspec.json.decode(answer.body) if answer.body else None


def exposures(shop: Threadline, person: str) -> list[dict[str, Any]]:
    return [event.properties for event in shop.events.of(person, type=FLAG_EXPOSED, order="asc").events]


def test_segment_member_gets_the_variant_of_the_rule(shop: Threadline) -> None:
    assert ask(shop, "ada", "new_checkout") == (
        200,
        {"key": "new_checkout", "reason": "TARGETING_MATCH", "variant": "on", "value": True, "metadata": {}},
    )


def test_unknown_targeting_key_is_evaluated_and_creates_nobody(shop: Threadline) -> None:
    before = shop.events.feed().events
    for key in ("nobody", "email:nobody@example.com", "x" * 900, "no_kind:1", "\x00"):
        status, answer = ask(shop, key, "new_checkout")
        assert (status, answer["reason"]) == (200, "SPLIT")
    assert shop.events.feed().events == before
    with pytest.raises(NotFound):
        shop.person("nobody")


def test_context_of_a_call_is_read_as_properties(shop: Threadline) -> None:
    assert ask(shop, "bob", "new_checkout", plan="staff")[1]["reason"] == "TARGETING_MATCH"
    assert ask(shop, "bob", "new_checkout", plan="free")[1]["reason"] == "SPLIT"


def test_split_draws_by_hash_in_the_declared_shares_and_always_the_same(shop: Threadline) -> None:
    keys = [f"visitor-{number}" for number in range(2_000)]
    first = [ask(shop, key, "new_checkout")[1]["variant"] for key in keys]
    assert first == [ask(shop, key, "new_checkout")[1]["variant"] for key in keys]
    # 400 are expected, and 5 standard deviations are 90.
    assert abs(Counter(first)["on"] - 400) < 90


def test_flag_that_is_not_enabled_gives_otherwise_and_exposes_nobody(shop: Threadline) -> None:
    assert ask(shop, "ada", "limit")[1] == {
        "key": "limit",
        "reason": "DISABLED",
        "variant": "low",
        "value": 10,
        "metadata": {},
    }
    assert exposures(shop, "ada") == []


def test_exposure_of_somebody_who_is_known_is_recorded_once_a_day(shop: Threadline, clock: Clock) -> None:
    for _ in range(3):
        ask(shop, "ada", "new_checkout")
    shown = {"flag": "new_checkout", "variant": "on", "reason": "TARGETING_MATCH"}
    assert exposures(shop, "ada") == [shown]
    clock.now += DAY
    for _ in range(2):
        ask(shop, "ada", "new_checkout")
    assert exposures(shop, "ada") == [shown, shown]
    assert shop.person("ada").views["flags"]["new_checkout"]["variant"] == "on"


def test_evaluation_of_all_flags_exposes_nobody_and_answers_304_to_its_mark(shop: Threadline) -> None:
    status, answer = ask(shop, "ada")
    assert (status, [flag["key"] for flag in answer["flags"]]) == (200, ["colour", "limit", "new_checkout"])
    assert exposures(shop, "ada") == []
    [route] = [route for route in shop.engine.catalogue.public_routes if route.path == PATH]
    body = b'{"context": {"targetingKey": "ada"}}'
    whole = route.answer(shop.engine, PublicRequest({}, {}, {}, body, shop.engine.now(), "POST"))
    assert whole.headers is not None
    mark = whole.headers["etag"]
    assert asked(shop, body, headers={"if-none-match": mark}) == (304, None)
    assert asked(shop, b'{"context": {"targetingKey": "bob"}}', headers={"if-none-match": mark})[0] == 200


@pytest.mark.parametrize(
    ("body", "flag", "status", "code"),
    [
        (b"{", "colour", 400, "PARSE_ERROR"),
        (b"[]", "colour", 400, "INVALID_CONTEXT"),
        (b'{"context": 7}', "colour", 400, "INVALID_CONTEXT"),
        (b"{}", "colour", 400, "TARGETING_KEY_MISSING"),
        (b'{"context": {"targetingKey": ""}}', "colour", 400, "TARGETING_KEY_MISSING"),
        (b'{"context": {"targetingKey": "ada"}}', "colours", 404, "FLAG_NOT_FOUND"),
        (b"{", "", 400, "PARSE_ERROR"),
    ],
)
def test_what_cannot_be_evaluated_has_the_code_of_the_protocol(
    shop: Threadline, body: bytes, flag: str, status: int, code: str
) -> None:
    answered = asked(shop, body, flag)
    assert (answered[0], answered[1]["errorCode"]) == (status, code)
    assert answered[1].get("key", "") == flag


def test_what_if_counts_who_would_get_another_variant_and_records_nothing(shop: Threadline) -> None:
    before = shop.events.feed().events
    result = shop.flags.what_if("new_checkout", flag={"variants": {"on": True, "off": False}, "otherwise": "off"})
    assert (result.people_read, result.exact, result.after["off"].people) == (2, True, 2)
    assert result.before["on"].people == sum(change.people.people for change in result.changes) >= 1
    assert shop.events.feed().events == before
    with pytest.raises(InvalidValue, match="there is no variant 'maybe'"):
        shop.flags.what_if("new_checkout", flag={"variants": {"on": True}, "otherwise": "maybe"})


def test_flags_of_somebody_are_what_programs_get_for_them(shop: Threadline) -> None:
    for person in ("ada", "bob"):
        given = {flag.flag: flag.variant for flag in shop.flags.of(person).flags}
        assert given == {flag["key"]: flag["variant"] for flag in ask(shop, person)[1]["flags"]}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("a: {variants: {x: 1}, otherwise: y}", "there is no variant 'y'; there are x"),
        ("a: {variants: {x: 1}, otherwise: x, rules: [{split: {z: 1}}]}", "there is no variant 'z'"),
        ("a: {variants: {x: 1}, otherwise: x, rules: [{}]}", "give a variant, or a split with weights"),
        ("a: {variants: {x: 1}, otherwise: x, rules: [{split: {x: 0}}]}", "at least one weight is above 0"),
        (
            "a: {variants: {x: 1}, otherwise: x, rules: [{when: {field: feature.x, gt: 1}, variant: x}]}",
            "nothing is known under 'feature'; did you mean 'features'?",
        ),
    ],
)
def test_mistake_in_a_flag_is_named_with_its_place(tmp_path: Path, flags: str, message: str) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text(f"flags:\n  {flags}\n")
    with pytest.raises(InvalidDefinition) as caught:
        threadline.open("memory:", definitions=file)
    assert message in str(caught.value)
    assert f"{file}:2" in str(caught.value)


def test_exposure_that_a_write_key_claims_is_no_view_and_in_no_experiment(shop: Threadline) -> None:
    ask(shop, "ada", "new_checkout")
    forged = threadline.Event(
        type=FLAG_EXPOSED,
        identifiers=(threadline.Identifier("user_id", "bob"),),
        occurred_at=1,
        key="forged",
        source_type="external",
        properties={"flag": "new_checkout", "variant": "on", "reason": "SPLIT"},
    )
    shop.engine.recorder.record([forged])
    assert shop.person("bob").views["flags"] == {}
    rows = shop.analytics.experiment(
        assignment='{"event": "flag_exposed", "where": {"flag": "new_checkout"}}', arm="variant", window="1d"
    ).rows
    assert [(row.arm, row.people) for row in rows] == [("on", 1)]


def test_exposures_are_a_table_of_sql(shop: Threadline) -> None:
    from threadline.exports.curated.reading import opened

    ask(shop, "ada", "new_checkout")
    with opened(shop.engine, None, "default") as reading:
        rows = reading.run("SELECT flag, variant, count(*) AS n FROM flag_exposures GROUP BY ALL").read_all()
    assert rows.to_pylist() == [{"flag": "new_checkout", "variant": "on", "n": 1}]


def test_screen_shows_the_flags_and_what_somebody_gets(shop: Threadline) -> None:
    engine = shop.engine
    client = TestClient(Application(engine, Settings(access_log=False)), follow_redirects=False)
    engine.accounts.create("default", "root", "password of root", "viewer")
    client.cookies.set(COOKIE, engine.accounts.sign_in("root", "password of root")[1])
    page = client.get("/flags", params={"person": "ada"}).text
    assert "new_checkout" in page
    assert "TARGETING_MATCH" in page
    assert "Flags" in client.get("/people").text
    assert "nobody is" in client.get("/flags", params={"person": "nobody"}).text.lower()
