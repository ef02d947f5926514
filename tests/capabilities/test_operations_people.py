"""A person in one read, people in pages, tags; joined, split and back again through operations."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.capabilities.asked import STARTS_AT, Asked
from tests.capabilities.search_stage import searching
from tests.capabilities.segments_stage import SPENDERS
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue
from threadline.kernel.errors import Conflict, InvalidValue, MergeRefused, NotFound
from threadline.kernel.operation import Operation
from threadline.kernel.time import DAY, HOUR, format_time
from threadline.surfaces.operation_calls import path_names


def known(person: dict[str, Any]) -> dict[str, Any]:
    """What is known of a person, without what counts the events that Threadline itself puts in a thread."""
    apart = {"position", "timeline", "identifiers"}
    kept = {name: value for name, value in person.items() if name not in apart}
    kept["identifiers"] = {f"{i['kind']}:{i['value']}" for i in person["identifiers"] if i["linked"]}
    return kept


# --- one person -------------------------------------------------------------------------------


def test_one_read_gives_everything_at_one_position() -> None:
    asked = Asked()
    asked.tell("identify", user_id="ada", email="Ada@Example.com", properties={"name": "Ada", "plan": None})
    asked.tell("group", user_id="ada", object_ref="acme", properties={"size": 3})
    asked.tell("purchase_completed", user_id="ada", properties={"total": 29.33, "currency": "EUR"})
    asked.tell("campaign_delivered", user_id="ada", properties={"campaign_id": "spring"})
    asked.ask("people_tag", id="user_id:ada", add=["vip"])
    person = asked.ask("person", id="email:ada@example.com", timeline=2)
    assert person["position"] == 5
    assert person["traits"] == {"name": "Ada"}
    assert person["tags"] == ["vip"]
    assert person["groups"] == {"acme": {"size": 3}}
    assert person["activity"]["events_by_type"]["purchase_completed"] == 1
    total = person["features"]["monetary_total"]
    assert (total["value"], total["currency"], total["status"]) == (29.33, "EUR", "PRESENT")
    assert [event["type"] for event in person["timeline"]["events"]] == ["tag_added", "campaign_delivered"]
    (timer,) = person["timers"]
    assert (timer["policy"], timer["key"]) == ("campaign_ignored", "campaign:spring")
    assert "spring" in person["views"]["campaigns"]
    assert [f"{i['kind']}:{i['value']}" for i in person["identifiers"]] == ["user_id:ada", "email:ada@example.com"]
    assert all(i["linked"] and i["first_used_at"] <= i["last_used_at"] for i in person["identifiers"])


@pytest.mark.parametrize(
    ("trait", "zone"),
    [("Asia/Calcutta", "Asia/Kolkata"), ("europe/rome", "Europe/Rome"), ("Nowhere/Land", ""), (None, "")],
)
def test_a_person_has_the_zone_of_their_trait_by_the_name_that_it_goes_by(trait: str | None, zone: str) -> None:
    asked = Asked()
    asked.tell("identify", user_id="ada", properties={"timezone": trait})
    assert asked.ask("person", id="user_id:ada")["timezone"] == zone


def test_a_person_is_found_by_id_and_by_identifier_and_otherwise_not() -> None:
    asked = Asked()
    id = asked.tell("page", user_id="ada")["person"]
    assert asked.ask("person", id=id)["id"] == asked.ask("person", id="user_id: ada ")["id"] == id
    for ref in ("user_id:bob", "user_id:null", "f" * 32, ":", "user_id:", "nobody"):
        with pytest.raises(NotFound):
            asked.ask("person", id=ref)


def test_people_are_called_by_name_then_e_mail_address_then_strongest_identifier() -> None:
    asked = Asked()
    ada = asked.tell("identify", user_id="ada", properties={"first_name": "Ada", "last_name": "Byron"})["person"]
    asked.tell("identify", user_id="bob", properties={"email": "Bob@example.com"})
    asked.tell("page", user_id="cleo", email="cleo@example.com")
    asked.tell("page", user_id="dora", anonymous_id="device")
    refs = [ada, "user_id:ada", "bob", "email:cleo@example.com", "anonymous_id:device", "user_id:nobody", ":"]
    people = asked.ask("people_names", people=refs)["people"]
    assert {ref: each["name"] for ref, each in people.items()} == {
        ada: "Ada Byron",
        "user_id:ada": "Ada Byron",
        "bob": "Bob@example.com",
        "email:cleo@example.com": "cleo@example.com",
        "anonymous_id:device": "dora",
    }
    assert people["user_id:ada"]["id"] == ada
    assert asked.ask("people_names", people=[ada], workspace="other")["people"] == {}


def test_a_merged_person_has_the_name_of_who_they_are_now() -> None:
    asked = Asked()
    ids = [asked.tell("identify", user_id=each, properties={"name": each.title()})["person"] for each in ("ada", "bob")]
    asked.ask("people_merge", id=ids[0], other=ids[1], force=True)
    people = asked.ask("people_names", people=ids)["people"]
    assert people[ids[0]] == people[ids[1]]
    assert people[ids[1]]["id"] == ids[0]


NAMES_A_PERSON = [
    each
    for each in Asked().engine.catalogue.operations
    if each.method == "GET" and each.path.startswith("/v1/people/{id}") and path_names(each) == ("id",)
]


@pytest.mark.parametrize("operation", NAMES_A_PERSON, ids=lambda operation: operation.name)
def test_a_bare_value_is_a_user_id_for_every_operation(operation: Operation) -> None:
    """Law: of a person named by a bare value, every operation answers what it answers under ``user_id:value``."""
    asked = searching()
    asked.tell("page", user_id="ada", email="ada@example.com", properties={"url": "/"})
    asked.tell("page", email="x", user_id=32 * "a")
    asked.tell("page", user_id="bob")
    asked.engine.public_address.use_local("http://localhost")
    more = {
        "people_merge_preview": {"other": "bob"},
        "memory_variables": {"names": "a.b.c"},
        "consent_link": {"address": "ada@example.com"},
    }.get(operation.name, {})
    instant = {"as_of": format_time(asked.now)} if "as_of" in operation.params.__struct_fields__ else {}
    for name in ("ada", 32 * "a"):
        answers = []
        for id in (name, f"user_id:{name}", asked.ask("person", id=name)["id"]):
            asked.now = STARTS_AT + HOUR
            answers.append(asked.ask(operation.name, id=id, **more, **instant))
        assert answers[0] == answers[1] == answers[2]


def test_a_bare_value_that_is_the_id_of_a_person_is_that_person() -> None:
    asked = Asked()
    id = asked.tell("page", user_id="ada")["person"]
    other = asked.tell("page", user_id=id)["person"]
    assert asked.ask("person", id=id)["id"] == id
    assert asked.ask("person", id=f"user_id:{id}")["id"] == other
    with pytest.raises(NotFound):
        asked.ask("person", id=id, workspace="theirs")


def test_bare_identifiers_split_list_and_spend_as_user_ids() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada", email="ada@example.com")
    asked.tell("page", user_id="eve", email="eve@example.com")
    asked.ask("people_merge", id="ada", other="eve", force=True)
    assert asked.ask("people_split", id="ada", identifiers=["eve"])["new"]["identifiers"] == ["user_id:eve"]
    assert asked.ask("people_list", identifier="eve") == asked.ask("people_list", identifier="user_id:eve")
    asked.ask("points_adjust", id="ada", points=10, request="gift", reason="a gift")
    first, again = (
        asked.ask("points_spend", id=id, points=3, request="order")["event"] for id in ("ada", "user_id:ada")
    )
    assert first == again


def test_a_shared_kind_gives_one_lead_id_in_every_workspace() -> None:
    asked = Asked({"passport": {"shared": True, "priority": 1}})
    for workspace in ("default", "theirs"):
        asked.tell("page", passport="X1", user_id=f"ada-{workspace}", workspace=workspace)
    asked.tell("page", user_id="bob")
    leads = [asked.ask("person", id="passport:X1", workspace=workspace) for workspace in ("default", "theirs")]
    assert leads[0]["lead_id"] == leads[1]["lead_id"] != ""
    assert leads[0]["id"] != leads[1]["id"]
    assert asked.ask("person", id="user_id:bob")["lead_id"] == ""


def test_an_identifier_set_aside_is_shown_as_not_linked() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada", anonymous_id="phone")
    asked.tell("page", user_id="bob", anonymous_id="phone")
    bob = asked.ask("person", id="user_id:bob")
    assert {f"{i['kind']}:{i['value']}": i["linked"] for i in bob["identifiers"]} == {
        "user_id:bob": True,
        "anonymous_id:phone": False,
    }


SPENDERS_CATALOGUE = Asked(definitions=SPENDERS).engine.catalogue


# --- people -----------------------------------------------------------------------------------


def listed(asked: Asked, **params: Any) -> list[str]:
    """The user ids of all pages."""
    found, after = [], ""
    while True:
        page = asked.ask("people_list", cursor=after, **params)
        assert len(page["people"]) <= params.get("limit", 100)
        found += [person["identifiers"][0] for person in page["people"]]
        after = page["next"]
        if not after:
            return found


@given(ours=st.integers(0, 12), theirs=st.integers(0, 12), tagged=st.integers(0, 12), limit=st.integers(1, 5))
def test_pages_of_people_visit_each_once(ours: int, theirs: int, tagged: int, limit: int) -> None:
    asked = Asked()
    for place in range(ours):
        asked.tell("page", user_id=f"{place + 1}")
        if place < tagged:
            asked.ask("people_tag", id=f"user_id:{place + 1}", add=["vip"])
    for place in range(theirs):
        asked.tell("page", user_id=f"{place + 1}", workspace="theirs")
        asked.ask("people_tag", id=f"user_id:{place + 1}", add=["vip"], workspace="theirs")
    everybody = [f"user_id:{place + 1}" for place in range(ours)]
    assert sorted(listed(asked, limit=limit)) == sorted(everybody)
    assert sorted(listed(asked, limit=limit, tag="vip")) == sorted(everybody[:tagged])


def test_people_are_found_by_identifier_and_by_group() -> None:
    asked = Asked()
    asked.tell("group", user_id="ada", object_ref="acme", properties={"size": 3})
    asked.tell("group", user_id="bob", object_ref="acme")
    asked.tell("group", user_id="bob", object_ref="acme", properties={"left": True})
    assert listed(asked, group="acme") == ["user_id:ada"]
    assert listed(asked, identifier="user_id:bob") == ["user_id:bob"]
    assert listed(asked, identifier="user_id:eve") == []
    with pytest.raises(InvalidValue, match="one of"):
        asked.ask("people_list", tag="a", group="b")


def test_people_of_a_tag_are_listed_with_since_when_they_have_it() -> None:
    asked = Asked()
    asked.tell("identify", user_id="ada", properties={"plan": "pro"})
    at = asked.now - DAY
    asked.tell("tag_added", user_id="ada", at=at, properties={"tag": "vip"})
    for when in ("", '{"field": "traits.plan", "equals": "pro"}'):
        [listed] = asked.ask("people_list", tag="vip", when=when)["people"]
        assert listed["tagged_at"] == format_time(at)
    assert [person["tagged_at"] for person in asked.ask("people_list")["people"]] == [None]
    asked.ask("people_tag", id="user_id:ada", remove=["vip"])
    asked.ask("people_tag", id="user_id:ada", add=["vip"])
    [listed] = asked.ask("people_list", tag="vip")["people"]
    assert listed["tagged_at"] > format_time(at)


def test_tags_of_an_identify_are_tags_and_no_trait_and_the_newest_list_stands_for_those_before() -> None:
    asked = Asked()
    asked.ask("people_list")
    asked.tell("tag_added", user_id="ada", properties={"tag": "by_hand"})
    asked.tell("identify", user_id="ada", properties={"plan": "pro", "tags": ["news", "beta", "news", 7, ""]})
    ada = asked.ask("person", id="user_id:ada")
    assert (ada["traits"], ada["tags"]) == ({"plan": "pro"}, ["beta", "by_hand", "news"])
    for when in ({"field": "tags", "contains": "beta"}, {"field": "traits.tags", "contains": "beta"}):
        assert listed(asked, tag="beta", when=json.dumps(when)) == ["user_id:ada"]
    asked.tell("identify", user_id="ada", properties={"tags": ["news"]})
    assert asked.ask("person", id="user_id:ada")["tags"] == ["by_hand", "news"]
    assert asked.ask("people_tag", id="user_id:ada", remove=["news"])["tags"] == ["by_hand"]
    asked.tell("identify", user_id="ada", properties={"tags": ["old"]}, at=asked.now - DAY)
    assert asked.ask("person", id="user_id:ada")["tags"] == ["by_hand"]
    asked.tell("identify", user_id="ada", properties={"tags": "news"})
    assert asked.ask("person", id="user_id:ada")["tags"] == ["by_hand", "news"]
    asked.tell("identify", user_id="ada", properties={"tags": None})
    assert asked.ask("person", id="user_id:ada")["tags"] == ["by_hand"]
    assert (listed(asked, tag="by_hand"), listed(asked, tag="news")) == (["user_id:ada"], [])


def test_tags_that_somebody_has_are_offered_from_an_index_and_no_others() -> None:
    asked = Asked()
    names = asked.engine.catalogue.names
    assert names.offered("tag", asked.engine, "default") == []
    asked.tell("identify", user_id="ada", properties={"tags": ["news", "news/weekly", "a tab\there"]})
    for who in ("ada", "bob"):
        asked.tell("tag_added", user_id=who, properties={"tag": "vip"})
    asked.tell("tag_added", user_id="bob", properties={"tag": "gone"})
    asked.tell("tag_removed", user_id="bob", properties={"tag": "gone"})
    read: list[int] = []
    asked.engine.log.feed = lambda *args: read.append(1) or []  # type: ignore[method-assign,func-returns-value]
    assert names.offered("tag", asked.engine, "default") == ["a tab\there", "news", "news/weekly", "vip"]
    assert read == []
    asked.ask("people_tag", id="user_id:bob", remove=["vip"])
    assert "vip" in names.offered("tag", asked.engine, "default")
    asked.ask("people_tag", id="user_id:ada", remove=["vip"])
    assert "vip" not in names.offered("tag", asked.engine, "default")


@given(totals=st.lists(st.integers(0, 200), max_size=12), limit=st.integers(1, 5), tagged=st.booleans())
def test_people_by_feature_and_by_segment_are_those_for_whom_it_holds(
    totals: list[int], limit: int, tagged: bool
) -> None:
    asked = Asked(catalogue=SPENDERS_CATALOGUE)
    for number, total in enumerate(totals, 1):
        asked.tell("purchase_completed", user_id=f"{number}", properties={"total": total, "currency": "EUR"})
        if number % 2:
            asked.ask("people_tag", id=f"user_id:{number}", add=["odd"])
    wanted = sorted(f"user_id:{n}" for n, total in enumerate(totals, 1) if total > 100 and (n % 2 or not tagged))
    more = {"tag": "odd"} if tagged else {}
    when = json.dumps({"field": "features.monetary_total", "gt": 100})
    assert sorted(listed(asked, when=when, limit=limit, **more)) == wanted
    both = {"all": [json.loads(when), {"field": "tags", "contains": "odd"}]}
    spenders = sorted(f"user_id:{n}" for n, total in enumerate(totals, 1) if total > 80)
    assert sorted(listed(asked, segment="spenders", limit=limit)) == spenders
    odd = [who for who in wanted if int(who.partition(":")[2]) % 2]
    assert sorted(listed(asked, segment="spenders", when=both, limit=limit)) == odd


def test_a_condition_is_put_to_so_many_people_in_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadline.capabilities.profile.people.operations.people.LOOKED_AT_MAX", 4)
    monkeypatch.setattr("threadline.capabilities.profile.people.operations.people._TOGETHER", 2)
    asked = Asked()
    for number in range(10):
        asked.tell("page", user_id=f"u{number}")
    when = json.dumps({"field": "features.has_purchased", "equals": True})
    page = asked.ask("people_list", when=when)
    assert (page["people"], page["people_read"], page["next"] != "") == ([], 4, True)
    assert listed(asked, when=when) == []
    assert len(listed(asked, when=when.replace("true", "false"), limit=3)) == 10


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"when": "{"}, "when: this is not JSON"),
        ({"when": '{"field": "features.monetary_total", "above": 1}'}, "when.above: unknown operator 'above'"),
        ({"when": '{"field": "features.monetary", "gt": 1}'}, "when: .*did you mean"),
        ({"when": '{"field": "event.type", "equals": "page"}'}, "when: a person has no event"),
        ({"segment": "spender"}, "did you mean 'spenders'"),
        ({"segment": "spenders", "tag": "vip"}, "give at most one of"),
    ],
)
def test_a_wrong_filter_of_people_is_named(params: dict[str, str], problem: str) -> None:
    with pytest.raises((InvalidValue, NotFound), match=problem):
        Asked(catalogue=SPENDERS_CATALOGUE).ask("people_list", **params)


@pytest.mark.parametrize("table", ["tag", "group"])
def test_who_gets_a_tag_or_a_group_ahead_of_the_clock_is_listed_from_then_on(table: str) -> None:
    asked = Asked()
    told = {"tag": ("tag_added", {"properties": {"tag": "vip"}}), "group": ("group", {"object_ref": "vip"})}
    type, said = told[table]
    for number, ahead in enumerate((-DAY, DAY // 2, 0)):
        asked.tell(type, at=asked.now + ahead, user_id=f"user {number}", **said)
    for listed in (["user_id:user 0", "user_id:user 2"], ["user_id:user 0", "user_id:user 1", "user_id:user 2"]):
        found = asked.ask("people_list", **{table: "vip"})["people"]
        assert sorted(person["identifiers"][0] for person in found) == listed
        asked.now += DAY


def test_a_workspace_cannot_have_a_name_that_looks_like_a_partition() -> None:
    asked = Asked()
    with pytest.raises(InvalidValue, match="cannot name a workspace"):
        asked.tell("page", user_id="ada", workspace="a/b")
    assert asked.ask("people_list", tag="b/c", workspace="a")["people"] == []


# --- tags -------------------------------------------------------------------------------------


def test_tags_come_and_go_as_events() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    assert asked.ask("people_tag", id="user_id:ada", add=["vip", "new"])["tags"] == ["new", "vip"]
    assert asked.ask("people_tag", id="user_id:ada", remove=["new"], add=["vip"])["tags"] == ["vip"]
    assert asked.ask("people_tag", id="user_id:ada", add=["new"])["tags"] == ["new", "vip"]
    told = [
        (e["type"], e["properties"]["tag"]) for e in asked.ask("events_of", id="user_id:ada", order="asc")["events"][1:]
    ]
    assert sorted(told[:2]) == [("tag_added", "new"), ("tag_added", "vip")]
    assert told[2:] == [("tag_removed", "new"), ("tag_added", "new")]


def test_a_named_request_is_carried_out_once() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    first = asked.ask("people_tag", id="user_id:ada", add=["vip"], request="r1")
    asked.ask("people_tag", id="user_id:ada", remove=["vip"])
    # A late retry of the first wish must not undo the later one.
    again = asked.ask("people_tag", id="user_id:ada", add=["vip"], request="r1")
    assert [r["status"] for r in first["receipts"] + again["receipts"]] == ["accepted", "duplicate"]
    assert again["tags"] == []


def test_a_named_request_is_carried_out_once_whoever_sends_it() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    asked.ask("people_tag", id="user_id:ada", add=["vip"], request="r1")
    asked.ask("people_tag", id="user_id:ada", remove=["vip"])
    (receipt,) = asked.ask("people_tag", source="another", id="user_id:ada", add=["vip"], request="r1")["receipts"]
    assert receipt["status"] == "duplicate"
    assert asked.ask("person", id="user_id:ada")["tags"] == []


@pytest.mark.parametrize("stands", [(), ("vip",), ("old",)])
@pytest.mark.parametrize(
    "other",
    [
        {"add": ["other"]},
        {"add": ["vip", "new"]},
        {"add": ["vip", "other"], "remove": ["old"]},
        {"add": ["vip", "new"], "remove": ["other"]},
        {"remove": ["vip", "new"], "add": ["old"]},
    ],
)
def test_a_named_request_with_other_tags_is_a_conflict_and_changes_nothing(
    other: dict[str, list[str]], stands: tuple[str, ...]
) -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    asked.ask("people_tag", id="user_id:ada", add=[*stands, "kept"])
    first = {"add": ["vip", "new"], "remove": ["old"]}
    made = asked.ask("people_tag", id="user_id:ada", **first, request="r1")
    again = asked.ask("people_tag", id="user_id:ada", add=["new", "vip"], remove=["old"], request="r1")
    assert {receipt["status"] for receipt in again["receipts"]} == {"duplicate"}
    assert {receipt["id"] for receipt in again["receipts"]} == {receipt["id"] for receipt in made["receipts"]}
    with pytest.raises(Conflict, match="'r1' was used for something else"):
        asked.ask("people_tag", id="user_id:ada", **other, request="r1")
    assert asked.ask("person", id="user_id:ada")["tags"] == ["kept", "new", "vip"]


def test_a_tag_that_no_projection_would_keep_is_refused() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    assert asked.ask("people_tag", id="user_id:ada", add=["é" * 256])["tags"] == ["é" * 256]
    with pytest.raises(InvalidValue, match="512 bytes"):
        asked.ask("people_tag", id="user_id:ada", add=["é" * 257])


def test_a_tag_cannot_be_added_and_removed_at_once() -> None:
    asked = Asked()
    asked.tell("page", user_id="ada")
    with pytest.raises(InvalidValue, match="both"):
        asked.ask("people_tag", id="user_id:ada", add=["x"], remove=["x"])


# --- merge, unmerge, split --------------------------------------------------------------------


def two_people(asked: Asked) -> tuple[str, str]:
    """Ada, known since a day, and a mail address of hers that nothing has linked yet."""
    asked.tell("identify", at=STARTS_AT - DAY, user_id="ada", properties={"name": "Ada"})
    asked.tell("purchase_completed", at=STARTS_AT - HOUR, user_id="ada", properties={"total": 10, "currency": "EUR"})
    asked.now += HOUR
    asked.tell("identify", email="ada@example.com", properties={"city": "Turin"})
    asked.tell("purchase_completed", email="ada@example.com", properties={"total": 5, "currency": "EUR"})
    return tuple(asked.ask("person", id=ref)["id"] for ref in ("user_id:ada", "email:ada@example.com"))  # type: ignore[return-value]


def test_a_preview_tells_what_a_merge_does_and_changes_nothing() -> None:
    asked = Asked()
    ada, mail = two_people(asked)
    before = asked.engine.store.feed()
    for operation, more in (("people_merge_preview", {}), ("people_merge", {"dry_run": True})):
        preview = asked.ask(operation, id=mail, other=ada, **more)
        assert (preview["done"], preview["survivor"], preview["merged"], preview["objection"]) == (False, ada, mail, "")
        assert preview["person"]["events"] == 4
    assert asked.engine.store.feed() == before
    done = asked.ask("people_merge", id=mail, other=ada)
    assert (done["done"], done["survivor"], done["merged"]) == (True, ada, mail)


def test_a_merged_person_is_the_fold_of_both_and_unmerge_brings_both_back() -> None:
    asked = Asked()
    ada, mail = two_people(asked)
    asked.now = STARTS_AT + DAY
    before = [known(asked.ask("person", id=id)) for id in (ada, mail)]
    done = asked.ask("people_merge", id=ada, other=mail, reason="told so", source="operator")
    one = asked.ask("person", id=mail)
    assert one["id"] == ada
    assert one["traits"] == {"name": "Ada", "city": "Turin"}
    assert one["features"]["monetary_total"]["value"] == 15
    told = asked.ask("events_show", id=done["event"])
    assert (told["properties"]["reason"], told["properties"]["by"]) == ("told so", "operator")
    undone = asked.ask("people_unmerge", id=done["event"])
    assert (undone["person"]["id"], undone["new"]["id"]) == (ada, mail)
    after = [known(asked.ask("person", id=id)) for id in (ada, mail)]
    assert after == before


def test_a_request_to_merge_is_carried_out_once() -> None:
    asked = Asked()
    ada, mail = two_people(asked)
    first = asked.ask("people_merge", id=ada, other=mail, request="r1")
    assert asked.ask("people_merge", id=ada, other=mail, request="r1") == first
    with pytest.raises(Conflict, match="already one person"):
        asked.ask("people_merge", id=ada, other=mail)
    undone = asked.ask("people_unmerge", id=first["event"])
    assert asked.ask("people_unmerge", id=first["event"]) == undone
    with pytest.raises(Conflict, match="undone since"):
        asked.ask("people_merge", id=ada, other=mail, request="r1")
    again = asked.ask("people_merge", id=ada, other=mail)
    assert again["done"]
    assert again["event"] != first["event"]
    assert asked.ask("people_unmerge", id=again["event"])["done"]


def test_an_identity_limit_refuses_a_merge_unless_forced() -> None:
    asked = Asked()
    ada, bob = (asked.tell("page", user_id=name)["person"] for name in ("ada", "bob"))
    assert "user_id" in asked.ask("people_merge_preview", id=ada, other=bob)["objection"]
    with pytest.raises(MergeRefused):
        asked.ask("people_merge", id=ada, other=bob)
    assert asked.ask("people_merge", id=ada, other=bob, force=True)["person"]["identifiers"] == [
        "user_id:ada",
        "user_id:bob",
    ]


def test_whoever_was_joined_by_force_goes_on_gaining_identifiers_of_other_kinds() -> None:
    asked = Asked()
    ada, bob = (asked.tell("page", user_id=name)["person"] for name in ("ada", "bob"))
    asked.tell("page", anonymous_id="phone")
    merge = asked.ask("people_merge", id=ada, other=bob, force=True)
    asked.tell("page", user_id="bob", email="bob@example.com")
    asked.tell("page", user_id="bob", anonymous_id="phone")
    asked.tell("page", user_id="bob", external_id="7")
    asked.tell("page", user_id="eve", external_id="7")
    # Of what there is too much of already there is never more.
    assert [join["identifiers"] for join in asked.ask("quarantine_list")["joins"]] == [["user_id:eve", "external_id:7"]]
    told = asked.ask("person", id=ada)["identifiers"]
    assert [each["value"] for each in told] == ["ada", "bob", "bob@example.com", "7", "phone"]
    asked.ask("people_unmerge", id=merge["event"])
    assert [each["value"] for each in asked.ask("person", id=ada)["identifiers"]] == ["ada"]


def test_a_split_takes_identifiers_out_with_their_events() -> None:
    asked = Asked()
    asked.tell("identify", user_id="ada", email="info@example.com", properties={"name": "Ada"})
    asked.tell("purchase_completed", email="info@example.com", properties={"total": 5, "currency": "EUR"})
    asked.now += DAY
    wish = {"id": "user_id:ada", "identifiers": ["email:info@example.com"]}
    preview = asked.ask("people_split", **wish, dry_run=True)
    assert (preview["done"], preview["new"]["identifiers"]) == (False, ["email:info@example.com"])
    assert asked.ask("person", id="email:info@example.com")["traits"] == {"name": "Ada"}
    done = asked.ask("people_split", **wish, request="s1")
    assert (done["person"]["id"], done["new"]["id"]) == (preview["person"]["id"], preview["new"]["id"])
    assert asked.ask("people_split", **wish, request="s1") == done
    shop = asked.ask("person", id="email:info@example.com")
    assert (shop["traits"], shop["features"]["monetary_total"]["value"]) == ({}, 5)
    assert asked.ask("person", id="user_id:ada")["features"]["monetary_total"]["value"] == 0
    with pytest.raises(NotFound):
        asked.ask("people_split", id="user_id:ada", identifiers=["email:info@example.com"])


def test_a_preview_of_a_split_names_those_who_will_be_there() -> None:
    asked = Asked()
    asked.tell("page", anonymous_id="phone")
    asked.now += DAY
    who = {f"kind_{n}": "x" for n in range(5)}
    asked.tell("page", anonymous_id="phone", **who)
    wish = {"id": "anonymous_id:phone", "identifiers": [f"{kind}:x" for kind in who]}
    # Events that come first decide which of them is the strongest and since when the new person is there.
    for kind in who:
        asked.tell("page", **{kind: "x"})
    asked.now += DAY
    told = ("id", "identifiers", "created_at")
    preview, done = asked.ask("people_split", **wish, dry_run=True), asked.ask("people_split", **wish)
    for part in ("person", "new"):
        assert {name: preview[part][name] for name in told} == {name: done[part][name] for name in told}


def test_only_a_merge_can_be_unmerged() -> None:
    asked = Asked()
    id = asked.tell("page", user_id="ada")["id"]
    with pytest.raises(InvalidValue, match="not a merge"):
        asked.ask("people_unmerge", id=id)


# --- definitions that change -------------------------------------------------------------------


@pytest.mark.parametrize(
    "declared",
    [
        {"blocked": ["card:Shared"]},
        {"junk": ["shared"]},
        {"card": {"identifying": False}},
        {"card": {"normalise": "email"}},
        {"card": {"joins": False}},
    ],
    ids=["blocked", "junk", "not identifying", "of another form", "joining nobody"],
)
def test_whoever_an_identifier_founded_stays_although_it_names_nobody_any_more(declared: dict[str, Any]) -> None:
    asked = Asked()
    asked.tell("campaign_delivered", card="Shared", properties={"campaign_id": "spring"})
    person = asked.tell("tool_used", card="Shared", user_id="ada")["person"]
    rules = Asked(declared).engine.catalogue.rules
    catalogue = Catalogue([*asked.engine.catalogue.projections, *asked.engine.catalogue.policies], rules)
    asked.engine = Engine(asked.engine.store, catalogue, lambda: asked.now)
    assert asked.ask("people_tag", id=person, add=["vip"])["tags"] == ["vip"]
    assert asked.ask("memory_remember", id=person, type="fact", key="size", value=41, request="r1")["person"] == person
    assert asked.ask("points_spend", id=person, points=1, request="r2")["status"] == "spent"
    asked.now += 8 * DAY
    assert Dispatcher(asked.engine, {}, "test").run_once() == 1
    shown = asked.ask("person", id=person)
    assert shown["features"]["campaign_ignored"]["value"] == 1
    assert shown["id"] == asked.ask("person", id="user_id:ada")["id"] == person
    assert len(list(asked.engine.reader.all_people("default"))) == 1
    assert asked.ask("rejected_list")["entries"] == []


# --- joins set aside --------------------------------------------------------------------------


def test_a_doubtful_join_waits_for_a_decision() -> None:
    asked = Asked()
    for name in ("bob", "eve"):
        asked.tell("page", user_id=f"{name}", anonymous_id=f"{name}-phone")
        asked.tell("page", user_id="ada", anonymous_id=f"{name}-phone")
    seen, after = [], ""
    while True:
        page = asked.ask("quarantine_list", limit=1, cursor=after)
        seen += page["joins"]
        after = page["next"]
        if not after:
            break
    assert len(seen) == len({join["id"] for join in seen}) == 2
    joined, dismissed = (asked.ask("quarantine_review", id=join["id"], join=join is seen[0]) for join in seen)
    assert (joined["status"], dismissed["status"]) == ("joined", "dismissed")
    assert len(asked.ask("person", id="user_id:ada")["identifiers"]) >= 2
    assert asked.ask("quarantine_list")["joins"] == []
    assert len(asked.ask("quarantine_list", status="")["joins"]) == 2
    with pytest.raises(Conflict):
        asked.ask("quarantine_review", id=seen[0]["id"], join=True)
