"""What holds for a whole journey: a panel for each thing, with a sentence that says what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.console.stage import close_up, csrf_of, opened, signed_in
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.reach.mail.definition import Cap, Mail
from threadline.capabilities.reach.messages.limits import QuietHours
from threadline.kernel.time import DAY, HOUR
from threadline.surfaces.console.journey_settings import PANELS, panels

WITH_HOURS = Mail(quiet_hours=QuietHours(start=22 * HOUR, stop=7 * HOUR), caps=(Cap(mails=3, per=7 * DAY),))


def sentence(title: str, text: str, mail: Mail = Mail()) -> str:  # noqa: B008  an immutable value
    (shown,) = (panel for panel in panels(value_of(text) or {}, mail, []) if panel["title"] == title)
    made: str = shown["sentence"]
    return made


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Entering again", "", "Once, and never again."),
        ("Entering again", "reentry: always", "Each time, once they have left it."),
        ("Entering again", "reentry: 90d", "Again, 90 days after they have left it."),
        ("Entering again", "reentry: soon", "Not finished."),
        ("Quiet hours", "", "None: mails leave at any hour."),
        (
            "Quiet hours",
            'quiet_hours: {from: "21:00", to: "08:00"}',
            "Mails wait from 21:00 to 08:00, by the clock of the recipient.",
        ),
        ("Quiet hours", 'quiet_hours: {from: "21:00"}', "Not finished."),
        ("Quiet hours", "transactional: true", "None: its mails are transactional, and never wait."),
        ("Limits", "", "None. Limits hold for all mail together, and a definition file declares them."),
        ("Limits", "transactional: true", "None: its mails are transactional."),
        ("Control group", "", "None: everybody gets its mails."),
        (
            "Control group",
            "holdout: 0.1",
            "10% of the people go through it without mail, to be compared with.",
        ),
        ("Control group", "holdout: 3", "Not finished."),
        ("When it ends", "", "With its last step, or after a permanent bounce or a complaint."),
        (
            "When it ends",
            "{timeout: 30d, on_bounce: continue}",
            "With its last step, and after 30 days in any case, or after a complaint.",
        ),
        ("When it ends", "{on_bounce: continue, on_complaint: continue}", "With its last step."),
        ("After a change", "", "They keep the version with which they entered."),
        ("After a change", "on_change: move", "They go on in the new version, at the step with the same name."),
    ],
)
def test_the_sentence_of_a_panel_says_what_is_written(title: str, text: str, expected: str) -> None:
    assert sentence(title, text) == expected


def test_what_is_declared_for_all_mail_is_said_where_the_journey_says_nothing() -> None:
    assert (
        sentence("Quiet hours", "", WITH_HOURS)
        == "Those of all mail: from 22:00 to 07:00, by the clock of the recipient."
    )
    assert sentence("Limits", "", WITH_HOURS) == (
        "One person gets at most 3 in 1 week, of all journeys and broadcasts together."
    )


@pytest.mark.parametrize("value", [None, 3, [], {}, "x", True, {"from": []}])
@pytest.mark.parametrize("key", sorted({key for panel in PANELS for key in panel.keys}))
def test_a_value_of_any_form_gives_sentences(key: str, value: Any) -> None:
    assert all(panel["sentence"].endswith(".") for panel in panels({key: value}, Mail(), []))


def test_each_panel_stands_beside_the_drawing_with_what_the_text_says(tmp_path: Path) -> None:
    file = tmp_path / "threadline.yaml"
    file.write_text("mail: {senders: {shop: {from: shop@example.com}}, templates: {hello: {subject: Hi, text: Hi}}}\n")
    with opened(file) as engine:
        client = signed_in(engine)
        shown = close_up(client.get("/journeys/new").text)
        text = "steps:\n  - send: hello\nholdout: 0.2\nreentry: 30d\n"
        fields = {"_csrf": csrf_of(client, engine), "text": text, "_by": "form"}
        after = client.post("/journeys/new?part=panel", data=fields, headers={"origin": "http://testserver"}).text
    for panel in PANELS:
        assert panel.title in shown
    assert "20% of the people go through it without mail" in after
    assert "Again, 30 days after they have left it." in after


def test_a_field_of_the_whole_that_is_filled_in_changes_the_text() -> None:
    with opened() as engine:
        client = signed_in(engine)
        fields = {
            "_csrf": csrf_of(client, engine),
            "_by": "form",
            "_at": "",
            "_of": "",
            "text": "subject: Hello\ntext: Hi\n",
        }
        shown = client.post(
            "/templates/new?part=panel",
            data={**fields, "_f.subject": "Good day", "_f.text": "Hi"},
            headers={"origin": "http://testserver"},
        ).text
    assert "subject: Good day" in shown
