"""Memory through its operations: read, told, taken back, given back, searched, and as it was known at an instant."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.capabilities.asked import Asked
from threadline.capabilities.profile.memory.search import ranked
from threadline.engine.context import Context
from threadline.kernel.errors import Conflict, InvalidValue, LimitExceeded, NotFound
from threadline.kernel.limits import FACT_VALUE_BYTES_MAX
from threadline.kernel.time import DAY, HOUR, format_time
from threadline.surfaces.operation_calls import call

ADA = "user_id:ada"


@pytest.fixture
def shop() -> Asked:
    asked = Asked()
    asked.tell("page", user_id="ada")
    return asked


def remember(shop: Asked, key: str, value: Any, by: str = "user_declared", who: str = ADA, **more: Any) -> Any:
    """The keyword ``source`` of `ask` is the credential, so the fact's own needs another way in."""
    shop.now += 1
    operation = shop.operations["memory_remember"]
    params = {"id": who, "type": "fact", "key": key, "value": value, "source": by, **more}
    context = Context(shop.engine, "default", shop.now, "shop")
    return msgspec.to_builtins(call(operation, context, params, strict=True))


def known(shop: Asked, **params: Any) -> dict[str, Any]:
    facts = shop.ask("memory_of", id=ADA, **params)["facts"]
    return {f"{fact['type']}/{fact['key']}": fact["value"] for fact in facts}


def insight(shop: Asked, key: str, value: Any, by: str, **more: Any) -> None:
    told = {"type": "fact", "key": key, "value": value, **more}
    event = {"type": "agent_insight", "key": f"{by} {key}", "properties": told, "identifiers": {"user_id": "ada"}}
    shop.ask("record", source=by, events=[event])


def test_all_by_type_and_one(shop: Asked) -> None:
    shop.tell("purchase_completed", user_id="ada", properties={"product_id": "a", "total": 5, "payment_method": "pix"})
    assert set(known(shop)) == {"purchase/last_transaction", "purchase/product:a", "preference/payment_method"}
    assert set(known(shop, type="preference")) == {"preference/payment_method"}
    fact = shop.ask("memory_fact", id=ADA, type="preference", key="payment_method")
    assert (fact["value"], fact["source"], fact["events"]) == ("pix", "event_derived", 1)
    with pytest.raises(NotFound, match="is not known, or has expired"):
        shop.ask("memory_fact", id=ADA, type="preference", key="colour")
    assert shop.ask("person", id=ADA)["views"]["memory"]["preference"]["payment_method"] == {
        name: value for name, value in fact.items() if name != "score"
    }


def test_memory_is_read_as_of_an_instant_and_as_it_was_known_then(shop: Asked) -> None:
    first = shop.now
    bought = {"payment_method": "card", "product_id": "a", "total": 5}
    shop.tell("purchase_completed", first + HOUR, user_id="ada", properties=bought)
    shop.now += 2 * DAY
    shop.tell("purchase_completed", first + 2 * HOUR, user_id="ada", properties={"payment_method": "pix"})
    shop.now += DAY
    late = format_time(first + DAY)
    assert known(shop)["preference/payment_method"] == "pix"
    # On the next day the second purchase had happened, and nobody had told it yet.
    assert known(shop, as_of=late, known="now")["preference/payment_method"] == "pix"
    assert known(shop, as_of=late)["preference/payment_method"] == "card"
    assert known(shop, as_of=late)["purchase/product:a"]["total_spent"] == 5.0
    shop_then = format_time(first + 2 * DAY + HOUR)
    assert known(shop, as_of=shop_then)["preference/payment_method"] == "pix"
    with pytest.raises(InvalidValue, match="as_of is in the future"):
        shop.ask("memory_of", id=ADA, as_of=format_time(shop.now + DAY))


def test_what_is_told_becomes_an_event_and_a_fact(shop: Asked) -> None:
    said = remember(shop, "city", "Rome", expires_at=format_time(shop.now + HOUR))
    assert said["receipt"]["status"] == "accepted"
    assert (said["fact"]["value"], said["fact"]["confidence"], said["fact"]["conflicts"]) == ("Rome", 1.0, [])
    event = shop.ask("events_show", id=said["receipt"]["id"])
    assert (event["type"], event["properties"]["value"]) == ("fact_remembered", "Rome")
    shop.now += HOUR
    assert known(shop) == {}
    guess = remember(shop, "city", "Oslo", by="agent_inferred", confidence=0.99)
    assert (guess["fact"]["value"], guess["fact"]["confidence"]) == ("Oslo", 0.8)
    sure = remember(shop, "city", "Bari", by="system_computed", confidence=0.6)
    assert (sure["fact"]["value"], sure["fact"]["confidence"]) == ("Bari", 0.6)
    assert [each["value"] for each in sure["fact"]["conflicts"]] == ["Oslo"]


def test_what_is_noted_of_somebody_does_not_make_them_active(shop: Asked) -> None:
    def active() -> tuple[int, int, str]:
        views = shop.ask("person", id=ADA)["views"]
        streak, features = views["streaks"]["daily"], shop.ask("features_of", id=ADA, names="recency_days")["features"]
        return features["recency_days"]["value"], streak["current"], streak["last_active_on"]

    assert active() == (0, 1, "2026-01-01")
    shop.now += 3 * DAY
    for by in ("user_declared", "system_computed", "agent_inferred"):
        remember(shop, by, "Rome", by=by)
    shop.ask(
        "memory_unretract", id=shop.ask("memory_retract", id=ADA, type="fact", key="user_declared")["receipt"]["id"]
    )
    assert active() == (3, 0, "2026-01-01")


def test_a_request_is_carried_out_once(shop: Asked) -> None:
    one = remember(shop, "city", "Rome", request="r1")
    again = remember(shop, "city", "Rome", request="r1")
    assert (one["receipt"]["status"], again["receipt"]["status"]) == ("accepted", "duplicate")
    assert again["fact"]["events"] == 1
    taken = shop.ask("memory_retract", id=ADA, type="fact", key="city", request="r2")
    retried = shop.ask("memory_retract", id=ADA, type="fact", key="city", request="r2")
    assert (taken["gone"], retried["gone"]) == (["fact/city"], [])
    assert retried["receipt"]["status"] == "duplicate"
    assert retried["receipt"]["id"] == taken["receipt"]["id"]


def test_a_request_is_carried_out_once_whoever_was_merged_meanwhile(shop: Asked) -> None:
    shop.tell("page", user_id="eve")
    eve, said = "user_id:eve", {"type": "fact", "key": "city"}
    remember(shop, "city", "Rome", who=eve, request="r1")
    taken = shop.ask("memory_retract", id=eve, **said, request="r2")
    shop.ask("people_tag", id=eve, add=["vip"], request="r3")
    shop.ask("people_merge", id=ADA, other=eve, force=True)
    shop.ask("people_tag", id=ADA, remove=["vip"])
    remember(shop, "city", "Oslo")
    told = remember(shop, "city", "Rome", who=eve, request="r1")
    again = shop.ask("memory_retract", id=ADA, **said, request="r2")
    tag = shop.ask("people_tag", id=eve, add=["vip"], request="r3")
    assert (told["receipt"]["status"], told["fact"]["value"]) == ("duplicate", "Oslo")
    assert (again["receipt"]["status"], again["gone"]) == ("duplicate", [])
    assert again["receipt"]["id"] == taken["receipt"]["id"]
    assert (tag["receipts"][0]["status"], tag["tags"]) == ("duplicate", [])


def test_a_fact_is_taken_back_and_given_back_once_whoever_sends_it(shop: Asked) -> None:
    remember(shop, "city", "Rome")
    wish = {"id": ADA, "type": "fact", "key": "city", "request": "r"}
    taken = shop.ask("memory_retract", **wish)
    assert shop.ask("memory_retract", source="another", **wish)["receipt"]["status"] == "duplicate"
    back = shop.ask("memory_unretract", id=taken["receipt"]["id"])
    again = shop.ask("memory_unretract", source="another", id=taken["receipt"]["id"])
    assert (back["receipt"]["status"], again["receipt"]["status"]) == ("accepted", "duplicate")


def test_what_cannot_be_kept_is_refused_and_said(shop: Asked) -> None:
    for value, error in (
        (None, InvalidValue),
        ("x" * (FACT_VALUE_BYTES_MAX + 1), LimitExceeded),
        (2**70, LimitExceeded),
    ):
        with pytest.raises(error):
            remember(shop, "city", value)
    with pytest.raises(InvalidValue, match="source: invalid enum"):
        remember(shop, "city", "Rome", by="event_derived")
    with pytest.raises(InvalidValue, match="leave out `confidence`"):
        remember(shop, "city", "Rome", confidence=0.5)
    with pytest.raises(InvalidValue, match="a blank"):
        remember(shop, " city", "Rome")
    with pytest.raises(NotFound):
        shop.ask("memory_retract", id=ADA, type="fact", key="city")
    assert shop.ask("person", id=ADA)["position"] == 1


def test_more_facts_than_are_kept_are_said_not_to_be(shop: Asked) -> None:
    answers = [remember(shop, f"k{number}", number) for number in range(140)]
    left = known(shop)
    assert len(left) == 100
    # Whoever was told of a fact was told the truth at that time; one that came in may have put another one out.
    assert [each["fact"] is not None for each in answers] == [each["applied"] for each in answers]
    assert all(each["applied"] for each in answers[:100])
    assert 0 < sum(1 for each in answers if not each["applied"]) < 40


@pytest.mark.slow
def test_what_was_taken_back_or_has_expired_makes_room(shop: Asked) -> None:
    for number in range(100):
        remember(shop, f"old{number}", number)
    taken = [shop.ask("memory_retract", id=ADA, type="fact", key=f"old{number}") for number in range(100)]
    assert known(shop) == {}
    assert all(remember(shop, f"new{number}", number)["applied"] for number in range(100))
    assert sorted(known(shop)) == sorted(f"fact/new{number}" for number in range(100))
    # Of what was taken back some can still be had again.
    shop.ask("memory_retract", id=ADA, type="fact", key="new0")
    assert any(shop.ask("memory_unretract", id=each["receipt"]["id"])["back"] for each in taken)


def test_a_fact_told_again_by_the_same_request_is_kept(shop: Asked) -> None:
    told = [remember(shop, "city", "Rome", request="once") for _ in range(2)]
    assert [(each["receipt"]["status"], each["applied"]) for each in told] == [("accepted", True), ("duplicate", True)]
    assert not remember(shop, "trip", "Rome", expires_at="2020-01-01T00:00:00Z")["applied"]


def test_a_retraction_cascades_and_is_undone(shop: Asked) -> None:
    remember(shop, "climber", True)
    insight(shop, "gear", "ropes", "bot", derived_from=["fact/climber"])
    insight(shop, "alone", "yes", "bot")
    taken = shop.ask("memory_retract", id=ADA, type="fact", key="climber", reason="joke")
    assert taken["gone"] == ["fact/climber", "fact/gear"]
    assert known(shop) == {"fact/alone": "yes"}
    listed = shop.ask("memory_of", id=ADA)["retracted"]
    assert [(each["key"], each["because_of"]) for each in listed] == [("climber", ""), ("gear", "fact/climber")]
    with pytest.raises(NotFound, match="was retracted"):
        shop.ask("memory_fact", id=ADA, type="fact", key="climber")
    back = shop.ask("memory_unretract", id=listed[0]["retraction"])
    assert back["back"] == ["fact/climber", "fact/gear"]
    assert shop.ask("memory_of", id=ADA)["retracted"] == []
    assert shop.ask("memory_unretract", id=taken["receipt"]["id"])["receipt"]["status"] == "duplicate"
    with pytest.raises(Conflict, match="not a retraction"):
        shop.ask("memory_unretract", id=back["receipt"]["id"])


def test_what_occurs_after_a_retraction_counts_anew_and_what_comes_late_does_not(shop: Asked) -> None:
    bought = {"product_id": "a", "total": 5}
    shop.tell("purchase_completed", user_id="ada", properties=bought)
    before = shop.now
    shop.now += DAY
    shop.ask("memory_retract", id=ADA, type="purchase", key="product:a")
    shop.now += DAY
    shop.tell("purchase_completed", before + HOUR, user_id="ada", properties=bought)
    assert "purchase/product:a" not in known(shop)
    shop.tell("purchase_completed", user_id="ada", properties=bought)
    product = shop.ask("memory_fact", id=ADA, type="purchase", key="product:a")
    assert (product["value"]["purchases"], product["value"]["total_spent"], product["events"]) == (1, 5.0, 1)
    lineage = shop.ask("memory_lineage", id=ADA, type="purchase", key="product:a")["events"]
    assert [event["type"] for event in lineage] == [
        "purchase_completed",
        "fact_retracted",
        "purchase_completed",
        "purchase_completed",
    ]


def test_lineage_names_an_event_whose_facts_were_all_over() -> None:
    declared = """
memory:
  offer:
    {events: offered, each: offers, fact: "fact/{key}", says: value, source: agent_inferred, expires_at: until, most: 4}
"""
    shop = Asked(definitions=declared)
    offers = [{"key": f"k{number}", "value": number, "until": "2025-01-01"} for number in range(7)]
    shop.tell("offered", user_id="ada", properties={"offers": offers})
    assert shop.ask("memory_of", id=ADA)["facts"] == []
    [event] = shop.ask("memory_lineage", id=ADA, type="fact", key="k3")["events"]
    assert event["type"] == "offered"


def test_lineage_gives_every_event_and_no_other_page_by_page(shop: Asked) -> None:
    for number in range(30):
        product = "ab"[number % 2]
        shop.tell("purchase_completed", user_id="ada", properties={"product_id": product + "b"}, key=f"p{number}")
        shop.tell("purchase_completed", user_id="ada", properties={"product_id": product, "total": 1}, key=f"q{number}")
    found: list[str] = []
    cursor = ""
    while True:
        page = shop.ask("memory_lineage", id=ADA, type="purchase", key="product:a", limit=4, cursor=cursor)
        found += [event["key"] for event in page["events"]]
        cursor = page["next"]
        if not cursor:
            break
    # The other events are of the same type and make other facts.
    assert found == [f"q{number}" for number in range(28, -1, -2)]
    assert shop.ask("memory_fact", id=ADA, type="purchase", key="product:a")["events"] == len(found)


def test_two_people_joined_and_split_know_what_each_knew(shop: Asked) -> None:
    shop.tell("page", user_id="bob")
    remember(shop, "city", "Rome")
    shop.ask("memory_retract", id=ADA, type="fact", key="city")
    remember(shop, "city", "Oslo", who="user_id:bob")
    ada = known(shop)
    joined = shop.ask("people_merge", id=ADA, other="user_id:bob", force=True)
    assert known(shop) == {"fact/city": "Oslo"}
    shop.ask("people_unmerge", id=joined["event"])
    assert known(shop) == ada == {}
    assert shop.ask("memory_of", id="user_id:bob")["facts"][0]["value"] == "Oslo"


def test_an_undoing_stays_with_its_retraction_whoever_they_have_become(shop: Asked) -> None:
    shop.tell("page", anonymous_id="phone")
    remember(shop, "city", "Oslo", who="anonymous_id:phone")
    taken = shop.ask("memory_retract", id="anonymous_id:phone", type="fact", key="city")["receipt"]["id"]
    joined = shop.ask("people_merge", id=ADA, other="anonymous_id:phone")
    assert shop.ask("memory_unretract", id=taken)["back"] == ["fact/city"]
    shop.ask("people_unmerge", id=joined["event"])
    assert shop.ask("memory_of", id="anonymous_id:phone")["facts"][0]["value"] == "Oslo"
    assert known(shop) == {}
    assert shop.ask("memory_unretract", id=taken)["receipt"]["status"] == "duplicate"
    assert shop.ask("rejected_list")["entries"] == []


# --- search and variables -------------------------------------------------------------------------


def fact(type: str, key: str, value: Any) -> dict[str, Any]:
    return {"type": type, "key": key, "value": value}


FACTS = [
    fact("preference", "colour", "blue"),
    fact("fact", "car", {"colour": "blue", "make": "Citroën"}),
    fact("fact", "house", "a blueish one by the sea"),
    fact("form", "welcome:ou_habites_tu", "Orléans"),
    fact("purchase", "product:sock-12", {"product_name": "Sock", "total_spent": 12.5}),
]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("colour", ["colour", "car"]),
        ("blue", ["car", "colour", "house"]),
        ("BLUE colour", ["colour", "car", "house"]),
        ("citroen", ["car"]),
        ("orle", ["welcome:ou_habites_tu"]),
        ("sock", ["product:sock-12"]),
        ("12", ["product:sock-12"]),
        ("se", []),
        ("sea", ["house"]),
        ("red", []),
        ("?!", []),
    ],
)
def test_a_text_is_sought_in_keys_types_and_values(text: str, keys: list[str]) -> None:
    found = ranked(FACTS, text)
    assert [each["key"] for _, each in found] == keys
    assert all(score > 0 for score, _ in found)


SCRIPTS = [
    fact("fact", "city", "東京タワーの近く"),
    fact("fact", "greeting", "สวัสดีครับ"),
    fact("fact", "language", "हिन्दी भाषा"),
    fact("fact", "town", "Москва"),
    fact("fact", "capital", "مدينة القاهرة"),
    fact("fact", "street", "Straße ﬁn"),
    fact("fact", "phone", "iPhone手机"),
]


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("東京", ["city"]),
        ("タワー", ["city"]),
        ("京都", []),
        ("ครับ", ["greeting"]),
        ("हिन्दी", ["language"]),
        ("दिन", []),
        ("भाषा", ["language"]),
        ("МОСК", ["town"]),
        ("القاهرة", ["capital"]),
        ("strasse fin", ["street"]),
        ("手机", ["phone"]),
        ("iphone", ["phone"]),
    ],
)
def test_words_are_found_in_any_script(text: str, keys: list[str]) -> None:
    assert [each["key"] for _, each in ranked(SCRIPTS, text)] == keys


def test_a_search_answers_the_best_first(shop: Asked) -> None:
    for key, value in (("colour", "blue"), ("car", {"colour": "blue"}), ("house", "red")):
        remember(shop, key, value)
    found = shop.ask("memory_of", id=ADA, text="colour", limit=1)["facts"]
    assert [(each["key"], each["score"] > 0) for each in found] == [("colour", True)]


def test_definitions_are_told(shop: Asked) -> None:
    told = {each["name"]: each for each in shop.ask("memory_definitions")["derivations"]}
    assert told["product"]["fact"] == "purchase/product:{product_id|sku}"
    assert told["subscription"]["events"] == ["subscription_cancelled", "subscription_created"]
    assert told["sentiment"]["expires_after"] == "30d"
