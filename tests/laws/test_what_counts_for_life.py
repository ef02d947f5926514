"""Law: no rule of retention erases what still counts, by discovery over projections and over what definitions name."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.capabilities.asked import Asked
from threadline.capabilities.foundation.definitions import Definitions
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.folding.catalogue import discover
from threadline.kernel.errors import InvalidDefinition
from threadline.kernel.identity import SYSTEM_PREFIX
from threadline.kernel.lasting import Expiring, Lasting, erased_too_soon
from threadline.kernel.limits import RETENTION_DAYS_MAX
from threadline.kernel.projection import Projection
from threadline.kernel.time import DAY

DECLARED = """
feature_updates: {at: "03:00"}
memory: {colour: {events: chose, fact: preference/colour, value: colour}}
leaderboards: {best: {score: points.earned, per: country, segments: [rich]}, coins: {score: points.balance}}
segments: {rich: {when: {field: features.spent, greater_than: 3}}}
streaks:
  daily: false
  lessons: {events: lesson_done}
features:
  spent: {aggregate: sum, events: paid, of: total}
  seen_lately: {aggregate: count, events: seen, window: 20d}
  seen_longer: {aggregate: count, events: seen, window: 40d}
"""
ASKED = """
mail: {senders: {s: {from: a@b.example}}, templates: {hello: {subject: x, text: y}}}
journeys: {j: {trigger: {event: x}, steps: [{if: {sent: hello}, then: [{send: hello}]}]}}
"""
FREE = {"chose": "facts", "lesson_done": "streak"}
"""Types of users -> what reads them for life."""
OF_DAYS = "streaks"
"""It counts activity beside what streaks name: of the days that are stored, where no streak counts them."""


def problems(types: list[str], days: int, declared: str = DECLARED, drops_results: bool = False) -> list[str]:
    """What is refused of a rule, by the declarations of everything that ships and of these definitions."""
    values = discover(definitions=Definitions([("threadline.yaml", declared)]))
    rule = Expiring("retention rule 'x'", "threadline.yaml:1", tuple(types), days, drops_results)
    return list(erased_too_soon([*values, rule]))


def projections(declared: str = DECLARED) -> list[Projection]:
    values = discover(definitions=Definitions([("threadline.yaml", declared)]))
    return [value for value in values if isinstance(value, Projection)]


@pytest.mark.parametrize("name", [projection.name for projection in projections()])
def test_types_that_a_projection_folds_are_refused(name: str) -> None:
    (projection,) = (each for each in projections() if each.name == name)
    if projection.handles is None:
        assert projection.carries is not None or name == OF_DAYS  # below, by what they name
        return
    types = sorted(type for type in projection.handles if not type.startswith(SYSTEM_PREFIX))
    for type in (type for type in types if not problems([type], RETENTION_DAYS_MAX)):
        folding = [other for other in projections() if other.fold_of(type) is not None]
        assert {other.name for other in folding if other.carries is None} <= {OF_DAYS}, type


def test_results_go_only_with_a_rule_that_says_so_and_nothing_else_goes_by_it() -> None:
    values = discover(definitions=Definitions([("threadline.yaml", DECLARED)]))
    results = {type for value in values if isinstance(value, Lasting) for type in value.results}
    only = sorted(type for type in results if type.startswith("mail_"))  # features count those of campaigns as well
    assert {"mail_sent", "mail_delivered", "mail_opened", "mail_clicked"} <= set(only)
    assert [type for type in results if not problems([type], RETENTION_DAYS_MAX)] == []
    for type in only:
        assert problems([type], RETENTION_DAYS_MAX)[0].endswith(
            "cannot be erased by age: the results of broadcasts and templates are made of them; "
            "write `drops_results: true` in the rule if these may become 0"
        )
        assert problems([type], RETENTION_DAYS_MAX, drops_results=True) == []
    others = {type for each in projections() for type in each.handles or () if not type.startswith(SYSTEM_PREFIX)}
    assert [type for type in others - results if goes_by_it(type)] == []


def goes_by_it(type: str) -> bool:
    """Whether a type may go by a rule that lets results become 0, and by no other."""
    return bool(problems([type], RETENTION_DAYS_MAX)) and not problems([type], RETENTION_DAYS_MAX, drops_results=True)


def test_types_that_only_definitions_name_are_refused_with_what_reads_them() -> None:
    for type, reader in FREE.items():
        assert reader in problems([type], 36_500)[0]
    assert problems(["seen"], 39)[0].endswith(
        "count for 40 days: the feature 'seen_longer' reads them; write 40 or more"
    )
    assert problems(["seen"], 40) == problems(["page_viewed"], 1) == problems(["paid"], 1) == []


def test_window_over_any_event_keeps_what_people_do_for_as_long() -> None:
    declared = "streaks: {daily: false}\nfeatures: {busy: {aggregate: count, events: any, except: [seen], window: 20d}}"
    assert problems(["read"], 19, declared)[0].endswith("the feature 'busy' reads them; write 20 or more")
    assert problems(["read"], 20, declared) == problems(["seen"], 1, declared) == []
    assert problems(["points_refused"], 1, declared) == []


def test_streak_of_any_event_keeps_what_people_do_but_for_types_that_it_leaves_out() -> None:
    declared = "calendar: {active: {events: any, except: [page_viewed]}}"
    assert "the streak 'daily' counts any event" in problems(["read"], 90, declared)[0]
    assert problems(["page_viewed"], 90, declared) == problems(["mail_opened"], 365, declared, True) == []
    assert problems(["points_refused"], 365, declared) == []


@pytest.mark.parametrize(
    ("declared", "type", "days", "why"),
    [
        ("", "mail_sent", 3_650, "write `drops_results: true`"),
        ("", "mail_opened", 365, "the results of broadcasts"),
        ("", "segment_entered", 30, "who is in a segment"),
        ("", "fact_retracted", 30, "would be there again"),
        ("", "broadcast_addressed", 400, "whom a broadcast has addressed"),
        ("", "mail_fetched", 364, "results"),
        (ASKED, "mail_sent", 3_650, "whether a template was ever sent"),
    ],
)
def test_rule_that_is_too_short_is_refused_with_file_line_and_reason(
    declared: str, type: str, days: int, why: str
) -> None:
    text = f"{declared}\nretention: {{short: {{types: [{type}], days: {days}}}}}"
    with pytest.raises(InvalidDefinition) as caught:
        Asked(definitions=text)
    assert f"threadline.yaml:{text.count(chr(10)) + 1}: retention rule 'short': events of type" in str(caught.value)
    assert why in str(caught.value)


def test_mails_may_be_as_old_as_the_longest_cap() -> None:
    mail = (
        "mail: {senders: {s: {from: a@b.example}}, templates: {}, caps: [{mails: 1, per: 7d}, {mails: 9, per: 365d}]}"
    )
    assert problems(["mail_sent"], 365, mail, True) == []
    assert problems(["mail_sent"], 364, mail, True)[0].endswith("write 365 or more")
    (cap,) = (
        v for v in discover(definitions=Definitions([("m.yaml", mail)])) if isinstance(v, Lasting) and v.name == "mail"
    )
    assert cap.until["mail_sent"].microseconds == 365 * DAY


@pytest.mark.parametrize("run", range(3))
def test_views_are_the_same_with_and_without_the_rules_that_are_accepted(seed: int, run: int) -> None:
    rules = "retention: {seen: {types: [seen, page_viewed], days: 40}}"
    declared = DECLARED.replace('feature_updates: {at: "03:00"}\n', "")  # they say to the microsecond when they ran
    shops = [Asked(definitions=f"{declared}\n{extra}") for extra in ("", rules)]
    for shop in shops:
        random = Random(f"{seed}/{run}")
        for number in range(120):
            shop.tell(
                random.choice(["seen", "page_viewed", "paid", "chose", "lesson_done"]),
                user_id=random.choice("ab"),
                at=shop.now - random.randrange(200 * DAY),
                key=str(number),
                properties={"total": 2, "colour": "red"},
            )
        for _ in range(3):
            _work(shop)
            shop.now += 15 * DAY
    at = min(shop.now for shop in shops)
    for who in "ab":
        plain, expired = (_views(shop, who, at) for shop in shops)
        assert plain == expired
    assert shops[1].ask("jobs_show", id="retention")["counts"]["erased.seen"] > 20


def _views(shop: Asked, who: str, at: int) -> dict[str, Any]:
    person = shop.engine.reader.person("default", f"user_id:{who}")
    return shop.engine.reader.views(person, at)


def _work(shop: Asked) -> None:
    dispatcher = Dispatcher(shop.engine, {}, f"worker {shop.now}")
    while dispatcher.run_once():
        shop.now += 1
