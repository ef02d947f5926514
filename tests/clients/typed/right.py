"""Every operation of the Python API, as a user who runs `mypy --strict` calls it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import threadline
from threadline import Client, Receipt, Threadline

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
EVENT = {"type": "purchase_completed", "identifiers": {"user_id": "ada"}, "key": "order-1"}
RULE: dict[str, Any] = {"conditions": {"field": "event.properties.total", "greater_than": 80}}


def answers(shop: Threadline | Client) -> list[str]:
    """Fields of answers have types."""
    receipts: list[Receipt] = shop.record([EVENT])
    tracked: Receipt = shop.track("ada", "Order Completed", {"total": 29.33}, occurred_at=SINCE)
    identified: Receipt = shop.identify("ada", {"plan": "pro"})
    position: int = shop.person("ada").position
    ids: list[str] = [member.person for member in shop.segments.members("vip", limit=10).members]
    value: object = shop.features.of("ada").features["monetary_total"].value
    return [*ids, *(each.status for each in (*receipts, tracked, identified)), f"{position} {value}"]


def everything_else(shop: Threadline | Client) -> None:
    shop.catalogue()
    shop.person("ada")


def analytics(shop: Threadline | Client) -> None:
    shop.analytics.funnel(steps=["viewed", "bought"], window="7d", by="plan")
    shop.analytics.paths(start_at="viewed", direction="before", depth=3)
    shop.analytics.rfm(value="total", group="at risk")
    shop.analytics.sessions(gap="30m", per="week", by="plan")
    shop.analytics.retention(first="joined", returning="bought", per="month", kind="rolling")
    shop.analytics.attribution(channel="context.campaign.source", window="14d", value="total")
    shop.analytics.lifetime(value="total", weeks=26)
    shop.analytics.cohorts(first="joined", event="bought", value="total", per="month")
    shop.analytics.distribution(feature="monetary_total", baseline_stop="2026-01-01T00:00:00Z")
    shop.analytics.experiment(assignment="experiment_viewed", arm="variation_name", weights=["a=1", "b=1"])
    shop.analytics.trend(event="purchase_completed", where={"total": {"gt": 50}}, per="week", by="plan")


def consent(shop: Threadline | Client) -> None:
    shop.consent.change("ada", subscribe=["news"])
    shop.consent.link("ada")
    shop.consent.of("ada")
    shop.consent.topics()


def broadcasts(shop: Threadline | Client) -> None:
    shop.broadcasts.cancel("sale")
    shop.broadcasts.create("sale", template="sale", audience={"tags": ["news"]}, arms=[{"name": "a"}])
    shop.broadcasts.list(start=SINCE)
    shop.broadcasts.measure("sale", event="purchase_completed", within="3d")
    shop.broadcasts.pause("sale")
    shop.broadcasts.preview("sale")
    shop.broadcasts.recipients("sale")
    shop.broadcasts.resume("sale")
    shop.broadcasts.show("sale")
    shop.broadcasts.start("sale")


def alerts(shop: Threadline | Client) -> None:
    shop.alerts.dismiss("ada", "sale")
    shop.alerts.list(state="active")
    shop.alerts.of("ada", severity="warning", at=SINCE)
    shop.alerts.show("sale", version=1)
    shop.alerts.versions("sale")
    shop.alerts.withdraw("sale", note="over")
    shop.alerts.write("sale", title="Sale", tags=["vip"], start=SINCE, when=RULE["conditions"])


def decisions(shop: Threadline | Client) -> None:
    shop.decisions.audit("d-1")
    shop.decisions.evaluate(event=EVENT)
    shop.decisions.list()
    shop.decisions.verify()


def definitions(shop: Threadline | Client) -> None:
    shop.definitions.apply()
    shop.definitions.apply_in_background()
    shop.definitions.changes()
    shop.definitions.check(text="when: {field: tags, exists: true}", section="segments", name="tagged")
    shop.definitions.reload()
    shop.definitions.schema()


def effects(shop: Threadline | Client) -> None:
    shop.effects.parked()
    shop.effects.queues()
    shop.effects.redrive()
    shop.effects.resolve("0123456789abcdef0123456789abcdef", outcome="happened")
    shop.effects.timers()
    shop.effects.unknown()


def events(shop: Threadline | Client) -> None:
    shop.events.feed()
    shop.events.of("ada", start=SINCE, type="page")
    shop.events.show("ada")


def features(shop: Threadline | Client) -> None:
    shop.features.list()
    shop.features.preview(text="{aggregate: count, events: click}", name="clicks")
    shop.features.of("ada", as_of=SINCE, known="now")
    shop.features.top("vip")
    shop.features.training_set(labels=[{"person": "ada", "at": "2026-03-01"}])


def inbox(shop: Threadline | Client) -> None:
    shop.inbox.clear()
    shop.inbox.list(to="ada@example.com")
    shop.inbox.show("ada")


def feedback(shop: Threadline | Client) -> None:
    shop.feedback.counters(broadcast="april", start=SINCE)
    shop.feedback.events(template="welcome", type="mail_opened", limit=10)
    shop.feedback.notify(text="{}")
    shop.feedback.receive(raw="RnJvbTogYQ==", recipients=["reply@example.com"])


def interests(shop: Threadline | Client) -> None:
    shop.interests.attribution("ada")
    shop.interests.of("ada")
    shop.interests.summary("ada")


def journeys(shop: Threadline | Client) -> None:
    shop.journeys.enter("ada", "welcome", variables={"plan": "pro"})
    shop.journeys.exit("ada", "welcome")
    shop.journeys.history("ada", "welcome")
    shop.journeys.list()
    shop.journeys.of("ada", as_of=SINCE)
    shop.journeys.pause("welcome", person="ada")
    shop.journeys.people("welcome", step="first")
    shop.journeys.resume("welcome")
    shop.journeys.show("welcome")
    shop.journeys.what_if(definitions="journeys: {}")


def jobs(shop: Threadline | Client) -> None:
    shop.jobs.cancel("broadcast.sale")
    shop.jobs.list()
    shop.jobs.pause("broadcast.sale")
    shop.jobs.resume("broadcast.sale")
    shop.jobs.show("broadcast.sale")


def accounts(shop: Threadline | Client) -> None:
    shop.accounts.create(name="ada", role="marketer", password="correct horse battery")
    shop.accounts.list()
    shop.accounts.change("ada", role="operator")
    shop.accounts.remove("ada")


def audit_log(shop: Threadline | Client) -> None:
    shop.audit_log.list(operation="people_merge")


def keys(shop: Threadline | Client) -> None:
    shop.keys.create(name="vip", scopes=["read"])
    shop.keys.list()
    shop.keys.revoke("ada")


def leaderboards(shop: Threadline | Client) -> None:
    shop.leaderboards.list()
    shop.leaderboards.refresh()
    shop.leaderboards.standing("ada", "vip")
    shop.leaderboards.top("vip")


def mail(shop: Threadline | Client) -> None:
    shop.mail.history("ada", as_of=SINCE)
    shop.mail.preview("welcome", person="ada", variables={"code": "A1"})
    shop.mail.send("ada", template="welcome", variables={"code": "A1"}, request="welcome-ada")
    shop.mail.sent("ada", "welcome")
    shop.mail.template("welcome")
    shop.mail.templates()


def memory(shop: Threadline | Client) -> None:
    shop.memory.definitions()
    shop.memory.fact("ada", "preference", "colour")
    shop.memory.lineage("ada", "preference", "colour")
    shop.memory.of("ada")
    shop.memory.remember("ada", type="preference", key="colour", value="blue")
    shop.memory.retract("ada", "preference", "colour")
    shop.memory.unretract("ada")
    shop.memory.variables("ada")


def messages(shop: Threadline | Client) -> None:
    shop.messages.show("m-1")


def people(shop: Threadline | Client) -> None:
    shop.people.export("ada")
    shop.people.list()
    shop.people.list(when=RULE["conditions"])
    shop.people.erase("ada", dry_run=True)
    shop.erasures.list()
    shop.erasures.show("e")
    shop.erasures.ids("e")
    shop.people.merge("ada", other="bob")
    shop.people.merge_preview("ada", other="bob")
    shop.people.split("ada", identifiers=["email:ada@example.com"])
    shop.people.tag("ada")
    shop.people.unmerge("ada")


def points(shop: Threadline | Client) -> None:
    shop.points.adjust("ada", points=7, request="order-1", reason="told by phone")
    shop.points.history("ada")
    shop.points.ledger("ada")
    shop.points.of("ada")
    shop.points.spend("ada", points=7, request="order-1")
    shop.points.tables()


def quarantine(shop: Threadline | Client) -> None:
    shop.quarantine.list()
    shop.quarantine.review("ada", join=True)


def rejected(shop: Threadline | Client) -> None:
    shop.rejected.dismiss("ada")
    shop.rejected.list()
    shop.rejected.resubmit("ada", event=EVENT)
    shop.rejected.show("ada")


def rule_sets(shop: Threadline | Client) -> None:
    shop.rule_sets.list()
    shop.rule_sets.remove("vip")
    shop.rule_sets.write("vip", events=["purchase_completed"], rules=["big"])


def retention(shop: Threadline | Client) -> None:
    shop.retention.preview()


def rules(shop: Threadline | Client) -> None:
    shop.rules.activate("ada", version=1)
    shop.rules.gate("risk-score", 4)
    shop.rules.list()
    shop.rules.log("ada")
    shop.rules.retire("ada")
    shop.rules.shadow("ada", version=1)
    shop.rules.shadow_report("ada")
    shop.rules.show("ada")
    shop.rules.tested("ada", version=1)
    shop.rules.versions("ada")
    shop.rules.why("ada", "big")
    shop.rules.write("ada", rule=RULE)


def search(shop: Threadline | Client) -> None:
    shop.search.correlate(id="0123456789abcdef0123456789abcdef")
    shop.search.find(text="red shoes", person="ada", facets=True)
    shop.search.status()
    shop.search.sync(rebuild=True)
    shop.search.timeline("ada", limit=5)


def segments(shop: Threadline | Client) -> None:
    shop.segments.leaving("vip")
    shop.segments.list()
    shop.segments.members("vip")
    shop.segments.of("ada", as_of=SINCE)
    shop.segments.preview(text="when: {field: tags, exists: true}", name="vip", seconds=1)
    shop.segments.refresh()
    shop.segments.sizes()
    shop.segments.why("ada", "vip")


def streaks(shop: Threadline | Client) -> None:
    shop.streaks.days("ada")
    shop.streaks.of("ada")


def suppression(shop: Threadline | Client) -> None:
    shop.suppression.add(address="a@example.com")
    shop.suppression.get("a@example.com")
    shop.suppression.import_(addresses=["a@example.com"])
    shop.suppression.lift("a@example.com", reason="it is back")
    shop.suppression.list()


def webhooks(shop: Threadline | Client) -> None:
    shop.webhooks.destinations()
    shop.webhooks.start("vip")
    shop.webhooks.stop("vip")


def what_if(shop: Threadline | Client) -> None:
    shop.what_if.cancel("ada")
    shop.what_if.compare(one="a", other="bob")
    shop.what_if.list()
    shop.what_if.resume("ada")
    shop.what_if.run(rule="big", version=2)
    shop.what_if.status("ada")


with threadline.open("memory:") as store:
    answers(store)
with Client("http://127.0.0.1:8000", token="tl_...") as server:
    answers(server)
