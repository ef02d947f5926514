"""What somebody of support does on a person: why not that mail, and each of what people ask for, to its end."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from io import BytesIO
from itertools import count
from zipfile import ZipFile

import pytest
from starlette.testclient import TestClient

from tests.capabilities.unsent_stage import DEFINITIONS
from tests.chromium import launched
from tests.console.browser import SCHEMES, Watched, served
from tests.console.stage import NOW, ORIGIN, close_up, csrf_of, elements, opened, record, signed_in, unsafe
from threadline import Threadline
from threadline.app import open_engine
from threadline.engine.engine import Engine
from threadline.kernel.time import SECOND
from threadline.settings import Settings

ADA = "/people/user_id:ada"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    file = tmp_path_factory.mktemp("support") / "threadline.yaml"
    file.write_text(DEFINITIONS)
    seconds = count(NOW // SECOND)
    made = open_engine("memory:", Settings(), lambda: next(seconds) * SECOND, file)
    made.public_address.use_local("http://testserver")
    record(
        made,
        ("ada", "identify", {"email": "ada@example.com", "plan": "free", "first_name": "Ada"}),
        ("ada", "signed_up", {"channel": "</td><script>phone"}),
        ("bob", "identify", {"email": "bob@example.com"}),
        ("gone", "identify", {"email": "gone@example.com"}),
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def support(engine: Engine) -> TestClient:
    return signed_in(engine, "support")


def test_every_choice_of_why_not_is_answered_in_a_sentence(support: TestClient) -> None:
    page = support.get(f"{ADA}?tab=reach").text
    form = page.partition('id="why-not"')[2].partition("</form>")[0]
    choices = [html.unescape(each) for each in re.findall(r'<option value="([^"]*)"', form)]
    assert {"all", "template:hello", "journey:welcome"} <= set(choices)
    for chosen in choices:
        answer = support.get(ADA, params={"tab": "reach", "why_not": chosen})
        assert (answer.status_code, unsafe(answer.text)) == (200, [])
        assert re.search(r"(Not sent|Sent|Waits)[^<]*\.", answer.text), chosen


def test_why_not_says_the_condition_of_a_trigger_that_was_not_met(support: TestClient) -> None:
    page = close_up(support.get(f"{ADA}?tab=reach&why_not=journey:welcome").text)
    assert "not as the journey wants it. Not met: channel of the event is web." in page


@pytest.mark.parametrize("chosen", ["journey:none", "broadcast:none", "template:none", "</select>:x", ":", "id:bob"])
def test_a_mail_that_is_none_leaves_a_page_that_says_so(support: TestClient, chosen: str) -> None:
    answer = support.get(ADA, params={"tab": "reach", "why_not": chosen})
    assert (answer.status_code, unsafe(answer.text)) == (200, [])


# --- what people ask for --------------------------------------------------------------------------


def _done(client: TestClient, engine: Engine, operation: str, **given: str) -> str:
    """What a form of the console does, as a browser sends it; where it leads to."""
    form = {"_csrf": csrf_of(client, engine), **given}
    answer = client.post(f"/do/{operation}", data=form, headers={"origin": ORIGIN})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def _links(page: str) -> set[str]:
    return {attributes.get("href") or "" for _, attributes in elements(page)}


def test_the_first_tab_leads_support_to_each_question_and_a_viewer_to_what_they_may(engine: Engine) -> None:
    asked = {
        "tab=reach#why-not",
        "tab=identity",
        "tab=memory",
        "tab=privacy",
        "tab=privacy#export",
        "tab=privacy#erase",
    }
    for role, more in (("support", asked), ("viewer", {"tab=reach#why-not", "tab=privacy"})):
        page = signed_in(engine, role).get(ADA).text  # type: ignore[arg-type]
        nav = page.partition("questions")[2].partition("</nav>")[0]
        assert {link.partition("?")[2] for link in _links(nav)} - {"tab=reach"} == more, role


def test_support_downloads_what_is_stored_of_a_person_and_a_viewer_is_refused(engine: Engine) -> None:
    support = signed_in(engine, "support")
    [link] = [link for link in _links(support.get(f"{ADA}?tab=privacy").text) if link.endswith("part=export")]
    answer = support.get(link)
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="people_export.zip"'
    with ZipFile(BytesIO(answer.content)) as archive:
        assert b"ada@example.com" in archive.read("profile.jsonl")
    refused = signed_in(engine, "viewer").get(link)
    assert (refused.status_code, "may not ask" in refused.text) == (403, True)
    assert support.get("/people/user_id:nobody?part=export").status_code == 404


def test_a_person_unsubscribes_and_subscribes_again_and_the_proof_says_when_and_by_whom(engine: Engine) -> None:
    support = signed_in(engine, "support")
    _done(support, engine, "consent_change", id="user_id:ada", everything="true")
    _done(support, engine, "consent_change", id="user_id:ada", **{"subscribe:list": "news"})
    page = close_up(support.get(f"{ADA}?tab=privacy").text)
    proof = page.partition('id="proof"')[2].partition("</section>")[0]
    assert proof.index("Subscribed to news") < proof.index("Unsubscribed")
    assert "by an account or a token here, ada@example.com" in proof


def test_a_fact_is_corrected_and_taken_back(engine: Engine) -> None:
    support = signed_in(engine, "support")
    fact = {"id": "user_id:ada", "type": "preference", "key": "size"}
    _done(support, engine, "memory_remember", **fact, **{"value:json": "41"})
    [link] = [link for link in _links(support.get(f"{ADA}?tab=memory").text) if link.endswith("#state")]
    form = support.get(link).text.partition('action="/do/memory_remember"')[2].partition("</form>")[0]
    given = {each["name"]: each.get("value") for _, each in elements(form) if "name" in each}
    assert given["value:json"] == "41", "a number stays one"
    _done(support, engine, "memory_remember", **{**given, "value:json": "42"})  # type: ignore[arg-type]
    assert ">42<" in close_up(support.get(f"{ADA}?tab=memory").text)
    _done(support, engine, "memory_retract", **fact)
    assert "was taken back" in support.get(f"{ADA}?tab=memory").text


def test_two_people_are_merged_after_a_preview_and_the_merge_is_undone(engine: Engine) -> None:
    support = signed_in(engine, "support")
    preview = support.get(f"{ADA}?tab=identity&other=user_id:bob").text
    assert "Would have" in preview
    _done(support, engine, "people_merge", id="user_id:ada", other="user_id:bob", force="true", reason="same person")
    page = support.get(f"{ADA}?tab=identity").text
    [id] = re.findall(r'action="/do/people_unmerge".*?name="id" value="(\w+)"', page, re.DOTALL)
    _done(support, engine, "people_unmerge", id=id)
    assert "people_unmerge" not in support.get(f"{ADA}?tab=identity").text.partition("Merges and splits")[2]
    assert "bob" not in support.get(f"{ADA}?tab=overview").text.partition("Identifiers")[2].partition("</section>")[0]


def test_somebody_is_erased_after_a_preview_and_the_certificate_is_shown(engine: Engine) -> None:
    support = signed_in(engine, "support")
    page = support.get("/people/user_id:gone?tab=privacy&erase=preview").text
    form = page.partition('action="/do/people_erase"')[2].partition("</form>")[0]
    then = next(each["value"] or "" for _, each in elements(form) if each.get("name") == "_then")
    to = _done(support, engine, "people_erase", id="user_id:gone", reason="ticket 7", _then=then)
    assert re.fullmatch(r"/erasures\?id=[0-9a-f]{32}", to)
    certificate = support.get(to)
    assert (certificate.status_code, "Certificate" in certificate.text) == (200, True)
    assert "ticket 7" in certificate.text
    assert support.get("/people/user_id:gone").status_code == 404


def test_the_preview_of_an_erasure_says_what_the_header_does_not_count() -> None:
    with opened() as engine:
        record(engine, ("ada", "seen", {}), ("bob", "seen", {}))
        Threadline(engine).people.merge(id="user_id:ada", other="user_id:bob", force=True)
        page = close_up(signed_in(engine, "support").get(f"{ADA}?tab=privacy&erase=preview").text)
    assert "2 events · first seen" in page
    erase = page.partition('id="erase"')[2].partition("</dl>")[0]
    assert "<dt>Events</dt><dd>3<div" in erase, "the merge is one"
    assert "2 events of the person, and what Threadline noted for itself" in erase
    assert "<dt>Entries that repeat these</dt>" in erase
    assert "thread" not in re.findall("<dt>(.*?)</dt>", erase)


@pytest.mark.parametrize(
    ("operation", "given"),
    [
        ("people_tag", {"add:list": "vip"}),
        ("mail_send", {"template": "hello"}),
        ("journeys_enter", {"name": "welcome"}),
    ],
)
def test_support_is_refused_what_it_was_not_asked_for(engine: Engine, operation: str, given: dict[str, str]) -> None:
    support = signed_in(engine, "support")
    form = {"_csrf": csrf_of(support, engine), "id": "user_id:ada", **given}
    assert support.post(f"/do/{operation}", data=form, headers={"origin": ORIGIN}).status_code == 403


# --- in a browser ---------------------------------------------------------------------------------


def _fill(engine: Engine) -> None:
    shop = Threadline(engine, workspace="default", source="shop")
    shop.identify("ada", {"first_name": "Ada", "email": "ada@example.com"})
    shop.memory.remember("ada", type="preference", key="size", value=41)
    shop.consent.change("ada", everything=True)


TABS = (
    "",
    "?tab=reach&why_not=all",
    "?tab=memory&type=preference&key=size",
    "?tab=privacy&erase=preview",
    "?tab=identity",
)


@pytest.mark.browser
def test_the_tabs_of_support_fit_are_accessible_and_small_in_light_and_dark() -> None:
    wrong: list[str] = []
    with launched() as browser, served(_fill) as server:
        for scheme in SCHEMES:
            for width in (390, 1_440):
                with Watched(browser, server, scheme=scheme, width=width) as watched:
                    watched.sign_in()
                    for tab in TABS:
                        assert watched.look(f"{ADA}{tab}") == 200
                        wrong += [f"{tab} {width}: {each}" for each in (*watched.too_wide(), *watched.serious())]
                        wrong += [f"{tab}: too long"] if len(watched.page.content().encode()) > 100_000 else []
                    wrong += watched.faults
    assert not wrong, "\n".join(wrong)
