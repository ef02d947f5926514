"""Every operation of the asynchronous client, as a user who runs `mypy --strict` calls it."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from threadline import AsyncClient, Receipt

SINCE = datetime(2026, 3, 1, tzinfo=UTC)
EVENT = {"type": "purchase_completed", "identifiers": {"user_id": "ada"}, "key": "order-1"}
RULE: dict[str, Any] = {"conditions": {"field": "event.properties.total", "greater_than": 80}}


async def answers(shop: AsyncClient) -> list[str]:
    """Fields of answers have types."""
    receipts: list[Receipt] = await shop.record([EVENT])
    tracked: Receipt = await shop.track("ada", "Order Completed", {"total": 29.33}, occurred_at=SINCE)
    person = await shop.person("ada")
    return [*(each.status for each in (*receipts, tracked)), str(person.position)]


async def everything_else(shop: AsyncClient) -> None:
    await shop.catalogue()
    await shop.person("ada")


async def analytics(shop: AsyncClient) -> None:
    await shop.analytics.funnel(steps=["viewed", "bought"], window="7d", by="plan")
    await shop.analytics.paths(start_at="viewed", direction="before", depth=3)
    await shop.analytics.rfm(value="total", group="at risk")
    await shop.analytics.sessions(gap="30m", per="week", by="plan")
    await shop.analytics.retention(first="joined", returning="bought", per="month", kind="rolling")
    await shop.analytics.attribution(channel="context.campaign.source", window="14d", value="total")
    await shop.analytics.lifetime(value="total", weeks=26)
    await shop.analytics.cohorts(first="joined", event="bought", value="total", per="month")
    await shop.analytics.distribution(feature="monetary_total", baseline_stop="2026-01-01T00:00:00Z")
    await shop.analytics.experiment(assignment="experiment_viewed", arm="variation_name", weights=["a=1", "b=1"])
    await shop.analytics.trend(event="purchase_completed", where={"total": {"gt": 50}}, per="week", by="plan")


async def consent(shop: AsyncClient) -> None:
    await shop.consent.change("ada", subscribe=["news"])
    await shop.consent.link("ada")
    await shop.consent.of("ada")
    await shop.consent.topics()


async def broadcasts(shop: AsyncClient) -> None:
    await shop.broadcasts.cancel("sale")
    await shop.broadcasts.create("sale", template="sale", audience={"tags": ["news"]}, arms=[{"name": "a"}])
    await shop.broadcasts.list(start=SINCE)
    await shop.broadcasts.measure("sale", event="purchase_completed", within="3d")
    await shop.broadcasts.pause("sale")
    await shop.broadcasts.preview("sale")
    await shop.broadcasts.recipients("sale")
    await shop.broadcasts.resume("sale")
    await shop.broadcasts.show("sale")
    await shop.broadcasts.start("sale")


async def alerts(shop: AsyncClient) -> None:
    await shop.alerts.dismiss("ada", "sale")
    await shop.alerts.list(state="active")
    await shop.alerts.of("ada", severity="warning", at=SINCE)
    await shop.alerts.show("sale", version=1)
    await shop.alerts.versions("sale")
    await shop.alerts.withdraw("sale", note="over")
    await shop.alerts.write("sale", title="Sale", tags=["vip"], start=SINCE, when=RULE["conditions"])


async def decisions(shop: AsyncClient) -> None:
    await shop.decisions.audit("d-1")
    await shop.decisions.evaluate(event=EVENT)
    await shop.decisions.list()
    await shop.decisions.verify()


async def definitions(shop: AsyncClient) -> None:
    await shop.definitions.apply()
    await shop.definitions.apply_in_background()
    await shop.definitions.changes()
    await shop.definitions.check(text="when: {field: tags, exists: true}", section="segments", name="tagged")
    await shop.definitions.reload()
    await shop.definitions.schema()


async def effects(shop: AsyncClient) -> None:
    await shop.effects.parked()
    await shop.effects.queues()
    await shop.effects.redrive()
    await shop.effects.resolve("0123456789abcdef0123456789abcdef", outcome="happened")
    await shop.effects.timers()
    await shop.effects.unknown()


async def events(shop: AsyncClient) -> None:
    await shop.events.feed()
    await shop.events.of("ada", start=SINCE, type="page")
    await shop.events.show("ada")


async def features(shop: AsyncClient) -> None:
    await shop.features.list()
    await shop.features.preview(text="{aggregate: count, events: click}", name="clicks")
    await shop.features.of("ada", as_of=SINCE, known="now")
    await shop.features.top("vip")
    await shop.features.training_set(labels=[{"person": "ada", "at": "2026-03-01"}])


async def inbox(shop: AsyncClient) -> None:
    await shop.inbox.clear()
    await shop.inbox.list(to="ada@example.com")
    await shop.inbox.show("ada")


async def feedback(shop: AsyncClient) -> None:
    await shop.feedback.counters(broadcast="april", start=SINCE)
    await shop.feedback.events(template="welcome", type="mail_opened", limit=10)
    await shop.feedback.notify(text="{}")
    await shop.feedback.receive(raw="RnJvbTogYQ==", recipients=["reply@example.com"])


async def interests(shop: AsyncClient) -> None:
    await shop.interests.attribution("ada")
    await shop.interests.of("ada")
    await shop.interests.summary("ada")


async def journeys(shop: AsyncClient) -> None:
    await shop.journeys.enter("ada", "welcome", variables={"plan": "pro"})
    await shop.journeys.exit("ada", "welcome")
    await shop.journeys.history("ada", "welcome")
    await shop.journeys.list()
    await shop.journeys.of("ada", as_of=SINCE)
    await shop.journeys.pause("welcome", person="ada")
    await shop.journeys.people("welcome", step="first")
    await shop.journeys.resume("welcome")
    await shop.journeys.show("welcome")
    await shop.journeys.what_if(definitions="journeys: {}")


async def jobs(shop: AsyncClient) -> None:
    await shop.jobs.cancel("broadcast.sale")
    await shop.jobs.list()
    await shop.jobs.pause("broadcast.sale")
    await shop.jobs.resume("broadcast.sale")
    await shop.jobs.show("broadcast.sale")


async def accounts(shop: AsyncClient) -> None:
    await shop.accounts.create(name="ada", role="marketer", password="correct horse battery")
    await shop.accounts.list()
    await shop.accounts.change("ada", role="operator")
    await shop.accounts.remove("ada")


async def audit_log(shop: AsyncClient) -> None:
    await shop.audit_log.list(operation="people_merge")


async def keys(shop: AsyncClient) -> None:
    await shop.keys.create(name="vip", scopes=["read"])
    await shop.keys.list()
    await shop.keys.revoke("ada")


async def leaderboards(shop: AsyncClient) -> None:
    await shop.leaderboards.list()
    await shop.leaderboards.refresh()
    await shop.leaderboards.standing("ada", "vip")
    await shop.leaderboards.top("vip")


async def mail(shop: AsyncClient) -> None:
    await shop.mail.history("ada", as_of=SINCE)
    await shop.mail.preview("welcome", person="ada", variables={"code": "A1"})
    await shop.mail.send("ada", template="welcome", variables={"code": "A1"}, request="welcome-ada")
    await shop.mail.sent("ada", "welcome")
    await shop.mail.template("welcome")
    await shop.mail.templates()


async def memory(shop: AsyncClient) -> None:
    await shop.memory.definitions()
    await shop.memory.fact("ada", "preference", "colour")
    await shop.memory.lineage("ada", "preference", "colour")
    await shop.memory.of("ada")
    await shop.memory.remember("ada", type="preference", key="colour", value="blue")
    await shop.memory.retract("ada", "preference", "colour")
    await shop.memory.unretract("ada")
    await shop.memory.variables("ada")


async def messages(shop: AsyncClient) -> None:
    await shop.messages.show("m-1")


async def people(shop: AsyncClient) -> None:
    await shop.people.export("ada")
    await shop.people.list()
    await shop.people.list(when=RULE["conditions"])
    await shop.people.erase("ada", dry_run=True)
    await shop.erasures.list()
    await shop.erasures.show("e")
    await shop.erasures.ids("e")
    await shop.people.merge("ada", other="bob")
    await shop.people.merge_preview("ada", other="bob")
    await shop.people.split("ada", identifiers=["email:ada@example.com"])
    await shop.people.tag("ada")
    await shop.people.unmerge("ada")


async def points(shop: AsyncClient) -> None:
    await shop.points.adjust("ada", points=7, request="order-1", reason="told by phone")
    await shop.points.history("ada")
    await shop.points.ledger("ada")
    await shop.points.of("ada")
    await shop.points.spend("ada", points=7, request="order-1")
    await shop.points.tables()


async def quarantine(shop: AsyncClient) -> None:
    await shop.quarantine.list()
    await shop.quarantine.review("ada", join=True)


async def rejected(shop: AsyncClient) -> None:
    await shop.rejected.dismiss("ada")
    await shop.rejected.list()
    await shop.rejected.resubmit("ada", event=EVENT)
    await shop.rejected.show("ada")


async def rule_sets(shop: AsyncClient) -> None:
    await shop.rule_sets.list()
    await shop.rule_sets.remove("vip")
    await shop.rule_sets.write("vip", events=["purchase_completed"], rules=["big"])


async def retention(shop: AsyncClient) -> None:
    await shop.retention.preview()


async def rules(shop: AsyncClient) -> None:
    await shop.rules.activate("ada", version=1)
    await shop.rules.gate("risk-score", 4)
    await shop.rules.list()
    await shop.rules.log("ada")
    await shop.rules.retire("ada")
    await shop.rules.shadow("ada", version=1)
    await shop.rules.shadow_report("ada")
    await shop.rules.show("ada")
    await shop.rules.tested("ada", version=1)
    await shop.rules.versions("ada")
    await shop.rules.why("ada", "big")
    await shop.rules.write("ada", rule=RULE)


async def search(shop: AsyncClient) -> None:
    await shop.search.correlate(id="0123456789abcdef0123456789abcdef")
    await shop.search.find(text="red shoes", person="ada", facets=True)
    await shop.search.status()
    await shop.search.sync(rebuild=True)
    await shop.search.timeline("ada", limit=5)


async def segments(shop: AsyncClient) -> None:
    await shop.segments.leaving("vip")
    await shop.segments.list()
    await shop.segments.members("vip")
    await shop.segments.of("ada", as_of=SINCE)
    await shop.segments.preview(text="when: {field: tags, exists: true}", name="vip", seconds=1)
    await shop.segments.refresh()
    await shop.segments.sizes()
    await shop.segments.why("ada", "vip")


async def streaks(shop: AsyncClient) -> None:
    await shop.streaks.days("ada")
    await shop.streaks.of("ada")


async def suppression(shop: AsyncClient) -> None:
    await shop.suppression.add(address="a@example.com")
    await shop.suppression.get("a@example.com")
    await shop.suppression.import_(addresses=["a@example.com"])
    await shop.suppression.lift("a@example.com", reason="it is back")
    await shop.suppression.list()


async def webhooks(shop: AsyncClient) -> None:
    await shop.webhooks.destinations()
    await shop.webhooks.start("vip")
    await shop.webhooks.stop("vip")


async def what_if(shop: AsyncClient) -> None:
    await shop.what_if.cancel("ada")
    await shop.what_if.compare(one="a", other="bob")
    await shop.what_if.list()
    await shop.what_if.resume("ada")
    await shop.what_if.run(rule="big", version=2)
    await shop.what_if.status("ada")


async def main() -> None:
    async with AsyncClient("http://127.0.0.1:8000", token="tl_...") as server:
        await answers(server)


asyncio.run(main())
