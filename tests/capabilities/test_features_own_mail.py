"""Mails of ours are campaigns where that is declared, and no feature hears of them where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.capabilities.feedback_stage import BROWSER, Stage
from tests.capabilities.test_feedback_links import follow
from threadline.capabilities.reach.feedback.links import click_url, pixel_url
from threadline.capabilities.reach.feedback.own_campaigns import own_mail_policy
from threadline.kernel.policy import Policy

NAMES = ("campaigns_received_30d", "campaign_open_rate", "campaign_click_rate", "campaign_ignored")
DAY_SECONDS = 86_400


def values(stage: Stage) -> list[Any]:
    person = stage.engine.reader.person("default", "user_id:ada")
    features = stage.engine.reader.views(person, stage.now + 1)["features"]
    return [features[name]["value"] for name in NAMES]


def lived(yaml: str) -> Stage:
    """Of four marketing mails, one of a broadcast, two are opened, one of these is clicked in twice; and a receipt."""
    stage = Stage(yaml=yaml)
    mails = [stage.mail(broadcast="april"), stage.mail(), stage.mail(journey="welcome", step="1"), stage.mail()]
    receipt = stage.mail(template="receipt", transactional=True)
    for message in (mails[0], mails[2], receipt):
        follow(stage, pixel_url(stage.engine, "default", message))
        stage.decide()
    for message in (mails[2], mails[2], receipt):
        follow(stage, click_url(stage.engine, "default", message, "https://shop.example/"))
        stage.decide()
    follow(stage, pixel_url(stage.engine, "default", mails[1]), "Mozilla/5.0")  # by a machine
    return stage


def test_features_of_campaigns_count_own_marketing_mails_where_declared() -> None:
    stage = lived("campaigns: {own_mail: true}")
    assert values(stage) == [4, 0.5, 0.25, 0]
    delivered = [event.properties["campaign_id"] for event in stage.events("ada", "campaign_delivered")]
    assert (len(set(delivered)), delivered[0]) == (4, "april")
    stage.pass_(8 * DAY_SECONDS)
    stage.work()
    assert values(stage) == [4, 0.5, 0.25, 2]
    stage.pass_(30 * DAY_SECONDS)
    assert values(stage)[0] == 0


@pytest.mark.parametrize("yaml", ["", "campaigns: {ignored_after: 3d}", "campaigns: {own_mail: false}"])
def test_features_of_campaigns_hear_nothing_of_own_mails_without_it(yaml: str) -> None:
    stage = lived(yaml)
    stage.pass_(8 * DAY_SECONDS)
    stage.work()
    assert values(stage) == [0, None, None, 0]
    assert stage.events("ada", "campaign_delivered", "campaign_engaged") == []
    assert own_mail_policy().name not in {v.name for v in stage.engine.catalogue.policies if isinstance(v, Policy)}


def test_mail_that_was_sent_before_it_was_declared_is_no_campaign_later() -> None:
    stage = Stage(yaml="")
    message = stage.mail()
    later = Stage(stage.engine.store, yaml="campaigns: {own_mail: true}")
    later.now = stage.now
    follow(later, pixel_url(later.engine, "default", message), BROWSER)
    later.decide()
    assert len(later.events("ada", "mail_opened")) == 1
    assert values(later) == [0, None, None, 0]
