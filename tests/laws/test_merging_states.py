"""Law: the merged state of two people is that of the union of their events, also where there is too much to keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.laws import staging
from tests.laws.staging import CATALOGUE, CountingStore, event
from threadline.app import rules
from threadline.capabilities.decide.rules.projection import RULES_PER_PERSON
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.features.campaigns import CAMPAIGNS_MAX
from threadline.capabilities.profile.features.cells import BUCKET_KEYS_MAX, CURRENCIES_MAX
from threadline.capabilities.profile.interests.state import BLOCKS_MAX, CUTOFF, SLOTS_MAX, TOPICS, TOPICS_MAX
from threadline.capabilities.profile.points.ledger import CAPS_MAX, COOLS_MAX, DAYS_MAX, LOTS_MAX
from threadline.capabilities.profile.streaks.grants import GRANTS_MAX
from threadline.capabilities.profile.streaks.state import RECORDED_PARTS_MAX
from threadline.capabilities.reach.broadcasts.projection import ENTRIES_MAX
from threadline.capabilities.reach.consent.projection import ADDRESSES_MAX as CONSENT_ADDRESSES_MAX
from threadline.capabilities.reach.feedback.definition import TRANSIENT_MAX
from threadline.capabilities.reach.feedback.projection import ADDRESSES_MAX
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel import limits
from threadline.kernel.event import Event, Identifier, Recorded
from threadline.kernel.projection import Faster, Projection
from threadline.kernel.time import DAY, HOUR, MINUTE, format_time
from threadline.stores.memory import MemoryStore
from threadline.testing import scenarios
from threadline.testing.projection_laws import merged_states, merging_two_states_equals_folding_the_union
from threadline.testing.scenarios import NOW

# --- how often the log is spared ---------------------------------------------------------------

SHARES = {"streaks": 0.7}
"""The least share of pairs of people whose states can be merged; of projections that are not named here, all."""
ZONES = ("Europe/Rome", "America/Sao_Paulo", "Asia/Kathmandu")


def at_home(random: Random, count: int, zone: str, moved: bool) -> list[Event]:
    """What somebody does whose events name the zone they live in, nearly all of them; ``moved``: since long ago."""
    told = []
    for drawn in scenarios.history(random, people=1, count=count):
        there = "Pacific/Auckland" if moved and drawn.occurred_at < NOW - 90 * DAY else zone
        context = {**drawn.context, "timezone": there} if random.randrange(40) else {}
        told.append(msgspec.structs.replace(drawn, context=context))
    return told


def pair(random: Random) -> tuple[list[Recorded], list[Recorded]]:
    """Two people as they are found to be one: a known one, and a device that was used for some weeks."""
    zone = random.choice(ZONES)
    known = at_home(random, random.randrange(1, 40), zone, moved=random.randrange(5) == 0)
    there = zone if random.randrange(8) else random.choice(ZONES)
    device = at_home(random, random.randrange(1, 12), there, moved=False)
    device = [
        msgspec.structs.replace(each, key=f"d-{each.key}", occurred_at=NOW - (NOW - each.occurred_at) // 4)
        for each in device
    ]
    events = scenarios.recorded([*known, *device])
    return events[: len(known)], events[len(known) :]


# A projection may do without `merge`: then a join folds it from the log.
MERGED = [projection for projection in CATALOGUE.projections if projection.faster.merge is not None]


@pytest.mark.parametrize("projection", MERGED, ids=lambda each: each.name)
@pytest.mark.slow
def test_of_people_at_home_nearly_all_states_can_be_merged(projection: Projection, seed: int) -> None:
    random = Random(seed)
    merged = [_merged(projection, *pair(random)) for _ in range(200)]
    assert sum(merged) >= SHARES.get(projection.name, 1) * len(merged)


def _merged(projection: Projection, one: list[Recorded], other: list[Recorded]) -> bool:
    merged = merged_states(projection, _folded(projection, one), _folded(projection, other))
    if merged is not None:
        assert merged == _written(_folded(projection, [*one, *other]))
    return merged is not None


def _folded(projection: Projection, events: list[Recorded]) -> Any:
    state = projection.empty()
    for recorded in sorted(events, key=lambda each: (each.event.occurred_at, each.id)):
        if projection.handles is None or recorded.event.type in projection.handles:
            state = projection.after(state, recorded)
    return state


def _written(state: Any) -> bytes:
    return msgspec.msgpack.encode(state, order="sorted")


# --- zones -------------------------------------------------------------------------------------


@settings(max_examples=300)
@given(random=scenarios.randoms, count=st.integers(2, 30))
def test_streaks_of_people_who_travel_at_times(random: Random, count: int) -> None:
    """Few zones and few instants, a day apart or nearly: most of what decides whether days change is at an edge."""
    streaks = DECLARED.projections[DECLARED.index["streaks"]]
    days, named = random.choice((1, 7)), random.choice((2, 6))
    flights = [random.randrange(6) * DAY + random.randrange(-1, 2) for _ in range(random.randrange(3))]
    events = []
    for number in range(count):
        at = random.randrange(days) * DAY + random.choice((0, 0, HOUR, 2 * HOUR, -HOUR)) + random.randrange(-1, 2)
        person = random.randrange(2)
        zone = ("Asia/Kathmandu", "America/Sao_Paulo", "Pacific/Auckland")[sum(each <= at for each in flights) % 3]
        context = {"timezone": zone} if random.randrange(named) else {}
        if person and random.randrange(8) == 0:
            context = {"timezone": "UTC"}
        events.append(_event("lesson_done", {}, f"{person}-{number}", NOW - 9 * DAY + at, context=context))
    parts = [[each for each in scenarios.recorded(events) if each.event.key[0] == person] for person in "01"]
    _merged(streaks, *parts)
    merging_two_states_equals_folding_the_union(streaks, [*parts[0], *parts[1]], random)


# --- too much to keep --------------------------------------------------------------------------

DECLARED = Catalogue(
    discover(
        definitions=(
            definitions := Definitions(
                [
                    (
                        "t.yaml",
                        """
features:
  spent: {aggregate: sum, events: sale, of: total, currency: currency, window: 30d}
  largest: {aggregate: max, events: sale, of: total, currency: currency}
  kinds: {aggregate: distinct, events: sale, of: kind, window: 30d}
  kinds_ever: {aggregate: distinct, events: sale, of: kind}
  first_kind: {aggregate: first, events: sale, of: kind, window: 30d}
  hour: {aggregate: preferred_hour, events: sale, window: 3y}
  mean: {aggregate: average, events: sale, of: total, window: 2d}
interests: {counting: unique, window: 10m}
consent: {topics: {news: {}, club: {confirm: welcome}}}
leaderboards:
  points: {score: points.earned, periods: [day, week, month, all], per: plan, tags: [vip]}
  purse: {score: points.balance}
streaks:
  lessons: {events: lesson_done, cadence: day, times: 3, counting: events, grace: 2h}
  monthly: {events: lesson_done, cadence: month, times: 4, counting: events}
""",
                    )
                ]
            )
        )
    ),
    rules(definitions),
)


def _event(type: str, properties: dict[str, Any], key: str, at: int, **fields: Any) -> Event:
    identifiers = fields.pop("identifiers", (Identifier("user_id", "u"),))
    return Event(type=type, identifiers=identifiers, occurred_at=at, key=key, properties=properties, **fields)


def _back(random: Random, longest: int) -> int:
    return NOW - 1 - random.randrange(longest)


def profiles(random: Random, n: int) -> Event:
    name = f"n{random.randrange(700)}"
    type = random.choice(("identify", "tag_added", "tag_removed", "group"))
    properties = {f"{name}-{i}": n for i in range(9)} if type == "identify" else {"tag": name, "left": n % 3 == 0}
    return _event(type, properties, str(n), _back(random, 9), object_ref=name)


def addresses(random: Random, n: int) -> Event:
    return _event(
        "page", {}, str(n), _back(random, DAY), identifiers=(Identifier("email", f"{random.randrange(400)}"),)
    )


def kinds(random: Random, n: int) -> Event:
    return _event(f"kind_{random.randrange(400)}", {}, str(n), _back(random, DAY))


def campaigns(random: Random, n: int) -> Event:
    type = random.choice(("campaign_delivered", "campaign_engaged", "campaign_ignored"))
    return _event(type, {"campaign_id": n}, str(n), _back(random, DAY))


def memberships(random: Random, n: int) -> Event:
    type = random.choice(("segment_entered", "segment_entered", "segment_entered", "segment_kept", "segment_left"))
    properties = {"segment": f"s{random.randrange(3 * limits.SEGMENTS_MAX)}", "version": random.choice("ab")}
    return _event(type, properties, str(n), _back(random, 99), source_type="internal")


def subscriptions(random: Random, n: int) -> Event:
    type = random.choice(("subscribed", "subscribed", "subscribed", "unsubscribed"))
    properties = {
        "topic": random.choice(("news", "club")),
        "address": f"{random.randrange(2 * CONSENT_ADDRESSES_MAX)}@x.com",
    }
    properties |= {"confirmed": True} if random.randrange(2) else {}
    return _event(type, properties, str(n), _back(random, 99), source_type="internal")


def suppressions(random: Random, n: int) -> Event:
    type = random.choice(("address_suppressed", "address_unsuppressed"))
    properties = {
        "address": f"{random.randrange(2 * CONSENT_ADDRESSES_MAX)}@x.com",
        "reason": random.choice(("bounce", "manual")),
    }
    return _event(type, properties, str(n), _back(random, 99), source_type="internal")


def decisions(random: Random, n: int) -> Event:
    properties = {"rule": f"r{random.randrange(40)}", "version": 1, "status": random.choice(("Approved", "Rejected"))}
    return _event("decision_made", properties, str(n), _back(random, 99), source_type="internal")


def feedback(random: Random, n: int) -> Event:
    # Few of them end a count, so that one address has more bounces than are remembered.
    type = "mail_delivered" if random.randrange(400) == 0 else "mail_bounced"
    address = "a@example.com" if n % 4 == 0 else f"b{random.randrange(90)}@example.com"
    properties = {"address": address, "bounce": "transient", "message": str(n)}
    return _event(type, properties, str(n), _back(random, 30 * DAY), source_type="internal")


def fetches(random: Random, n: int) -> Event:
    properties = {"message": f"m{random.randrange(3)}", "fetch": "clicked", "link": f"l{n % 7}", "agent": f"a{n % 5}"}
    return _event("mail_fetched", properties, str(n), _back(random, DAY // 2), source_type="internal")


def dismissals(random: Random, n: int) -> Event:
    # Of few instants, so that the same version is dismissed at two times, and two versions at the same.
    alert = {"alert": f"a{random.randrange(2 * limits.ALERT_DISMISSALS_MAX)}", "version": random.randrange(1, 4)}
    return _event("alert_dismissed", alert, str(n), _back(random, 99), source_type="internal")


def addressed(random: Random, n: int) -> Event:
    properties = {"broadcast": f"b{random.randrange(2 * ENTRIES_MAX)}", "arm": random.choice(("a", "b", "holdout"))}
    return _event("broadcast_addressed", properties, str(n), _back(random, 99), source_type="internal")


MAILS = ("mail_sent", "mail_sent", "mail_sent", "mail_skipped", "mail_delivered", "mail_opened", "mail_bounced")


def mails(random: Random, n: int) -> Event:
    # As few mails as two states may have: of more, only the events can tell which stay. The templates are too many.
    return _mail(random, n, f"m{random.randrange(limits.MAIL_LEDGER_MAX // 2)}")


def _mail(random: Random, n: int, message: str) -> Event:
    template = f"t{random.randrange(2 * limits.MAIL_TEMPLATES_MAX)}"
    properties = {"message": message, "template": template, "transactional": random.randrange(9) == 0}
    return _event(random.choice(MAILS), properties, str(n), _back(random, 99), source_type="internal")


def interests(random: Random, n: int) -> Event:
    topic = random.choice(("Article", f"t{random.randrange(200)}"))
    value = f"{random.randrange(400)}" + random.choice("xé") * 90
    at = _back(random, 700 * DAY)
    if n % 3 == 0:
        topic, value, at = "Article", "A", NOW - 30 * DAY - random.randrange(900) * 10 * MINUTE
    scopes = [{"topic": "category", "value": value}]
    return _event("app_action", {"topic": topic, "scopes": scopes}, str(n), at)


def ledger(random: Random, n: int) -> Event:
    type = random.choice(("points_earned",) * 6 + ("points_spent", "points_adjusted", "points_expired"))
    name = f"rule-{random.randrange(300)}" if n % 4 else "rule-0"
    properties: dict[str, Any] = {"points": random.randrange(1, 9), "rule": name, "streak": [n // 9, n % 7]}
    if n % 3 == 0:
        properties["cooldown"] = 1
    at = _back(random, random.choice((12, 12, 60, 6_000)) * DAY)
    if n % 11 == 0:
        type, properties = "points_anomaly_detected", {"kind": "spike", "of": str(random.randrange(200))}
    return _event(type, properties, str(n), at, source_type="internal")


def runs(random: Random, n: int) -> Event:
    journey, type = f"j{random.randrange(3 * limits.JOURNEYS_MAX)}", random.choice(("entered", "moved", "exited"))
    if n % 4 == 0:
        mail = random.choice(("mail_sent", "mail_skipped"))
        about = {"template": f"t{random.randrange(400)}"}
        return _event(mail, about, str(n), _back(random, 99), source_type="internal")
    if n % 4 == 1:
        pause = random.choice(("journey_paused", "journey_resumed"))
        return _event(pause, {"journey": journey}, str(n), _back(random, 99), source_type="internal")
    properties = {
        "journey": journey,
        "run": f"{random.randrange(9):032x}",
        "n": random.randrange(4),
        "version": 1,
        "entered_at": format_time(NOW - random.randrange(3) * DAY),
        "step": random.choice("ab"),
        "draw": n % 9,
        "mails": [{"template": f"t{random.randrange(400)}"}],
    }
    return _event(f"journey_{type}", properties, str(n), _back(random, 99), source_type="internal")


def sales(random: Random, n: int) -> Event:
    # As many kinds in one week as a bucket cannot tell apart, and days with many sales or few.
    code = chr(65 + random.randrange(26)) + chr(65 + random.randrange(3))
    properties = {"total": n, "currency": code, "kind": random.randrange(3_000)}
    at = NOW - 3 * DAY - random.randrange(DAY) if n % 2 else _back(random, 1_500 * DAY)
    return _event("sale", properties, str(n), at if n % 5 else NOW - random.randrange(60) * HOUR)


def facts(random: Random, n: int) -> Event:
    at = NOW - random.randrange(999)
    if n % 4 == 0:
        product = {"total": n, "currency": random.choice(("EUR", "USD")), "product_id": f"p{random.randrange(600)}"}
        return _event("purchase_completed", product, str(n), at)
    # Few facts that may expire: where these are too many, only the events can tell which of them stay.
    type = ("fact_remembered", "agent_insight", "fact_retracted")[n % 3]
    of_many = type == "fact_retracted" and random.randrange(3)
    fact = {"type": "preference", "key": f"k{random.randrange(500)}" if of_many else "colour", "value": n}
    return _event(type, fact, str(n), at, source=random.choice("abcdefg"))


def lessons(random: Random, n: int) -> Event:
    at = _back(random, 900 * DAY if n % 2 else 11_000 * DAY)
    zone = {"context": {"timezone": "Europe/Rome"}} if n % 7 else {}
    match n % 6:
        case 0:
            return _event("streak_freeze_granted", {"freezes": random.randrange(200)}, str(n), at, **zone)
        case 1:
            day = format_time(at)[:10]
            return _event("streak_amnesty_granted", {"from": day, "to": day}, str(n), at)
        case 2:
            properties = {"streak": "lessons", "length": random.randrange(200), "day": format_time(at)[:10]}
            type = "streak_milestone_reached" if n % 12 == 2 else "zone_hopping_detected"
            return _event(type, properties, str(n), at, source_type="internal")
    return _event("lesson_done", {}, str(n), at, context={"timezone": "Europe/Rome"})


PRODUCTS_MAX = 60
"""As the shipped derivation `product` has it."""


def full_points(state: Any) -> bool:
    caps = [len(state[name]) == most for name, most in (("days", DAYS_MAX), ("lots", LOTS_MAX), ("caps", CAPS_MAX))]
    rules = len(state["cools"]) == max(map(len, state["caps"].values())) == limits.POINTS_RULES_MAX
    cools = max(map(len, state["cools"].values())) == COOLS_MAX
    return all(caps) and rules and cools and len(state["flags"]) == limits.POINTS_ANOMALIES_MAX


def full_interests(state: Any) -> bool:
    blocks = [block for name, block in state.items() if name != TOPICS]
    slots = max(len(cell) for block in blocks for name, cell in block.items() if name != CUTOFF)
    cut = any(CUTOFF in block for block in blocks)
    return len(blocks) == BLOCKS_MAX and len(state[TOPICS]) == TOPICS_MAX and slots == 2 * SLOTS_MAX and cut


def full_features(state: Any) -> bool:
    sizes = {len(each) for each in _inner(state, list)}
    currencies = max(len(each) for slot in state.values() for each in _inner(slot, dict))
    return {BUCKET_KEYS_MAX + 1, limits.DISTINCT_VALUES_MAX + 1} <= sizes and currencies == CURRENCIES_MAX + 1


def _inner(value: Any, kind: type) -> list[Any]:
    """Every list, or dict, that a value holds, itself included."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [*([value] if isinstance(value, kind) else []), *(found for each in inner for found in _inner(each, kind))]


def full_memory(state: Any) -> bool:
    retractions, parts = state["!"], [part for code, part in state.items() if code != "!"]
    voices = {len(each) for part in parts for each in _inner(part, dict)}
    most = max(map(len, retractions.values()))
    full = (len(retractions), most) == (limits.FACTS_RETRACTED_MAX, limits.FACT_RETRACTIONS_MAX)
    return full and {limits.FACT_VOICES_MAX, PRODUCTS_MAX} <= voices


def full_streaks(state: Any) -> bool:
    parts = sum(name[0] == "d" for name in state)
    freezes, milestones = len(state["freezes"][""]) // 2, len(state["milestones"]["lessons"])
    return (parts, freezes, milestones) == (RECORDED_PARTS_MAX, GRANTS_MAX, limits.STREAK_MILESTONES_MAX)


CROWDS: dict[str, tuple[Callable[[Random, int], Event], int, Callable[[Any], bool]]] = {
    "profile": (
        profiles,
        3_000,
        lambda s: (
            [len(s[part]) for part in ("traits", "tags", "groups")]
            == [limits.TRAITS_PER_PERSON_MAX, limits.TAGS_PER_PERSON_MAX, limits.GROUPS_PER_PERSON_MAX]
        ),
    ),
    "identifiers": (addresses, 800, lambda s: len(s) == 200),
    "activity": (kinds, 800, lambda s: len(s[2]) == limits.EVENT_TYPES_COUNTED_MAX and s[3] > 0),
    "campaigns": (campaigns, CAMPAIGNS_MAX + 200, lambda s: len(s) == CAMPAIGNS_MAX),
    "segments": (
        memberships,
        4_000,
        lambda s: (len(s), max(len(kept[1]) for kept in s.values())) == (2 * limits.SEGMENTS_MAX, 4),
    ),
    "feedback": (
        feedback,
        1_500,
        lambda s: (len(s), max(len(bounces) for _, bounces in s.values())) == (ADDRESSES_MAX, TRANSIENT_MAX),
    ),
    "mail_fetches": (fetches, 400, lambda s: len(s) == limits.MAIL_FETCHES_MAX),
    "consent": (subscriptions, 1_000, lambda s: [len(s[topic][1]) for topic in s] == [CONSENT_ADDRESSES_MAX] * 2),
    "suppression": (suppressions, 500, lambda s: len(s) == CONSENT_ADDRESSES_MAX),
    "alerts": (dismissals, 3_000, lambda s: len(s) == limits.ALERT_DISMISSALS_MAX),
    "broadcasts": (addressed, 800, lambda s: len(s) == ENTRIES_MAX),
    "mail": (
        mails,
        4_000,
        lambda s: [len(s["mails"]), len(s["templates"])] == [limits.MAIL_LEDGER_MAX // 2, limits.MAIL_TEMPLATES_MAX],
    ),
    "decisions": (decisions, 300, lambda s: len(s) == RULES_PER_PERSON),
    "journeys": (
        runs,
        9_000,
        lambda s: (
            [len(s["runs"]), len(s["mails"]), len(s["paused"]), max(map(len, s["runs"].values()))]
            == [2 * limits.JOURNEYS_MAX, 300, 2 * limits.JOURNEYS_MAX, 4]
        ),
    ),
    "interests": (interests, 4_000, full_interests),
    "points": (ledger, 9_000, full_points),
    "leaderboards": (ledger, 3_000, lambda s: all(map(len, s["sums"].values()))),
    "features": (sales, 6_000, full_features),
    "memory": (facts, 4_000, full_memory),
    "streaks": (lessons, 6_000, full_streaks),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CROWDS)
def test_of_too_much_a_merged_state_keeps_what_a_fold_of_the_union_keeps(name: str, seed: int) -> None:
    make, count, full = CROWDS[name]
    projection, random = DECLARED.projections[DECLARED.index[name]], Random(seed)
    events = scenarios.recorded([make(random, number) for number in range(count)])
    assert full(_folded(projection, events)), "the crowd was to be too large"
    merging_two_states_equals_folding_the_union(projection, events, random)
    for share in (2, 10):
        mine = {each.id for each in events if random.randrange(share) == 0}
        parts = [each for each in events if each.id in mine], [each for each in events if each.id not in mine]
        assert _merged(projection, *parts)


@pytest.mark.parametrize("most", [-1, 0, 1, 40])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5])
def test_ledgers_of_mail_are_merged_unless_both_together_have_too_many(most: int, share: float, seed: int) -> None:
    """Feedback to a mail that was dropped makes it anew: of too many mails, only the events can tell which stay."""
    ledger, random = DECLARED.projections[DECLARED.index["mail"]], Random(seed)
    count = limits.MAIL_LEDGER_MAX + most
    mine = {f"m{number}" for number in range(round(share * count))}
    messages = [f"m{number}" for number in range(count)] * 3
    events = scenarios.recorded([_mail(random, n, message) for n, message in enumerate(messages)])
    parts: tuple[list[Recorded], list[Recorded]] = [], []
    for each in events:
        parts[each.event.properties["message"] not in mine].append(each)
    # A ledger from which mails were dropped can be merged with an empty one alone.
    assert _merged(ledger, *parts) == _merged(ledger, *reversed(parts)) == (most <= 0 or not mine)
    merging_two_states_equals_folding_the_union(ledger, events, random)


def test_every_projection_that_bounds_its_state_has_a_crowd() -> None:
    assert CROWDS.keys() | {"attribution", "privacy"} == DECLARED.index.keys()


# --- joins -------------------------------------------------------------------------------------


def entries_read_by_a_join(values: Sequence[object], zones: Sequence[str]) -> int:
    """How many entries of threads are read to join somebody with 60 events and somebody with 20; both live in a zone
    each. What is folded by then is what a refold makes of the log."""
    store = CountingStore(MemoryStore())
    on = staging.engine(store, values=values)  # type: ignore[arg-type]
    random = Random(5)
    for name, zone, count in (("u0", zones[0], 60), ("u1", zones[1], 20)):
        drawn = scenarios.history(random, people=1, count=count)
        told = [
            event("page", {"anonymous_id": name}, f"{name}-{n}", each.occurred_at, context={"timezone": zone})
            for n, each in enumerate(drawn)
        ]
        assert set(staging.statuses(on.recorder.record(told))) == {"accepted"}
    store.entries = 0
    both = Identifier("anonymous_id", "u0"), Identifier("anonymous_id", "u1")
    join = Event(type="page", identifiers=both, occurred_at=NOW - 1, key="both", context={"timezone": zones[0]})
    assert staging.statuses(on.recorder.record([join])) == ["accepted"]
    read = store.entries
    staging.assert_refold_changes_nothing(on)
    return read


def counting(**changes: Any) -> Projection:
    """A projection of a user's own that counts pages."""
    given: dict[str, Any] = {
        "name": "pages",
        "version": 1,
        "handles": frozenset({"page"}),
        "empty": lambda: [0],
        "fold": lambda state, recorded: [state[0] + 1],
        "view": lambda state, now, edges: state[0],
    }
    return Projection(**{**given, **changes})


def test_a_join_reads_the_log_only_for_what_cannot_be_merged() -> None:
    at_home = ("Europe/Rome", "Europe/Rome")
    merging = counting(faster=Faster(merge=lambda one, other: [one[0] + other[0]]))
    unsure = counting(faster=Faster(merge=lambda one, other: None))
    assert entries_read_by_a_join((), at_home) == 0
    assert entries_read_by_a_join([merging], at_home) == 0
    assert entries_read_by_a_join([counting()], at_home) == entries_read_by_a_join([unsure], at_home) == 20
    assert entries_read_by_a_join([counting(ordered=True)], at_home) == 80
    assert entries_read_by_a_join((), ("Europe/Rome", "Asia/Kathmandu")) == 0
