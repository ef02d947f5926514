"""Mail over SMTP, against a server that misbehaves as the recipient's address says."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.senders.mails import certificate, mail
from tests.servers.mail_sink import BEHAVIOURS, Accepted, MailSink, mail_sink
from threadline.kernel.errors import InvalidSetting, OutcomeUnknown
from threadline.kernel.sender import EFFECT_PARKED, EFFECT_RETRIED, Outcome
from threadline.senders import smtp
from threadline.senders.mail import make_sender
from threadline.senders.smtp import SmtpSender
from threadline.senders.smtp_connection import _stuffed

LOGIN = base64.b64encode(b"\0shop\0secret%").decode()
UNKNOWN = "unknown"


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MailSink]:
    with mail_sink(tmp_path_factory.mktemp("sink"), whole=True) as sink:
        yield sink


def sender_of(url: str) -> SmtpSender:
    sender = make_sender(url, SimpleNamespace(environment=lambda name: ""), 1)  # type: ignore[arg-type]
    assert isinstance(sender, SmtpSender)
    return sender


def plain(sink: MailSink, **options: str) -> SmtpSender:
    more = "".join(f"&{name}={value}" for name, value in options.items())
    return sender_of(f"smtp://127.0.0.1:{sink.port}?tls=off{more}")


def sent(sender: SmtpSender, to: str, **more: Any) -> Outcome | str:
    try:
        return sender.send(mail(to, **more), "0" * 32, "thread")
    except OutcomeUnknown:
        return UNKNOWN


def to_address(sink: MailSink, to: str) -> list[Accepted]:
    return [each for each in sink.accepted() if each.to == to]


def connections_of(sink: MailSink, to: str) -> list[int]:
    return [each.connection for each in to_address(sink, to)]


FIRST: dict[str, tuple[str, str]] = {
    "fine": ("mail_sent", "healthy"),
    "slow": ("mail_sent", "healthy"),
    "greylist": (EFFECT_RETRIED, "healthy"),
    "later": (EFFECT_RETRIED, "healthy"),
    "broken": (EFFECT_RETRIED, "failing"),
    "closing": (EFFECT_RETRIED, "failing"),
    "gone": ("mail_bounced", "healthy"),
    "nobody": ("mail_bounced", "healthy"),
    "late_gone": ("mail_bounced", "healthy"),
    "full": ("mail_bounced", "healthy"),
    "vague": ("mail_bounced", "healthy"),
    "policy": (EFFECT_PARKED, "healthy"),
    "spam": (EFFECT_PARKED, "healthy"),
    "too_large": (EFFECT_PARKED, "healthy"),
    "tempfail": (EFFECT_RETRIED, "failing"),
    "drop_rcpt": (EFFECT_RETRIED, "failing"),
    "drop_body": (UNKNOWN, ""),  # a small message is on its way as a whole before anybody can know
    "drop_after": (UNKNOWN, ""),
    "drop_accepted": (UNKNOWN, ""),
    "garbage": (UNKNOWN, ""),
    "silent": (UNKNOWN, ""),
}
"""What comes of the first attempt."""


def kind_of(outcome: Outcome | str) -> tuple[str, str]:
    return (outcome, "") if isinstance(outcome, str) else (outcome.type, outcome.destination)


def test_every_behaviour_of_the_sink_has_an_expected_outcome() -> None:
    assert FIRST.keys() == set(BEHAVIOURS)


@pytest.mark.parametrize("behaviour", FIRST)
def test_the_first_attempt_has_the_outcome_that_the_reply_calls_for(sink: MailSink, behaviour: str) -> None:
    sender = plain(sink, timeout="1")
    assert kind_of(sent(sender, f"{behaviour}-first@b.example")) == FIRST[behaviour]
    sender.close()


def test_a_connection_that_ends_before_the_final_dot_was_sent_lets_the_mail_be_sent_again(tmp_path: Path) -> None:
    with mail_sink(tmp_path, features="PIPELINING") as sink:
        sender = plain(sink)
        large = b"Subject: large\r\n\r\n" + b"x" * 70 * 200_000  # more than the buffers in between hold
        assert kind_of(sent(sender, "drop_body-1@b.example", message=large)) == (EFFECT_RETRIED, "failing")
        sender.close()
        assert sink.accepted() == []


def test_a_large_message_that_is_refused_before_its_end_is_parked_with_the_reply(tmp_path: Path) -> None:
    with mail_sink(tmp_path, features="PIPELINING") as sink:
        sender = plain(sink)
        large = b"Subject: large\r\n\r\n" + b"x" * 70 * 200_000  # more than the buffers in between hold
        outcome = sent(sender, "too_large-1@b.example", message=large)
        sender.close()
    assert isinstance(outcome, Outcome)
    assert outcome.type == EFFECT_PARKED
    assert outcome.properties["text"] == "5.3.4 Message too large"


def test_bounces_say_whether_they_are_permanent(sink: MailSink) -> None:
    sender = plain(sink)
    found = {}
    for behaviour in ("gone", "nobody", "late_gone", "full", "vague"):
        outcome = sent(sender, f"{behaviour}-kind@b.example")
        assert isinstance(outcome, Outcome)
        found[behaviour] = outcome.properties["bounce"], outcome.properties["code"]
        assert outcome.properties["template"] == "hello"
    sender.close()
    assert found == {
        "gone": ("permanent", "5.1.1"),
        "nobody": ("permanent", "550"),
        "late_gone": ("permanent", "5.1.1"),
        "full": ("transient", "5.2.2"),
        "vague": ("transient", "550"),
    }


def test_a_greylisted_mail_waits_as_long_as_the_server_asks(sink: MailSink) -> None:
    sender = plain(sink)
    outcome = sent(sender, "greylist-wait@b.example")
    assert isinstance(outcome, Outcome)
    assert outcome.retry_after_seconds == 300
    assert kind_of(sent(sender, "greylist-wait@b.example"))[0] == "mail_sent"
    sender.close()


def test_a_mail_arrives_as_it_was_and_its_outcome_names_the_id_of_the_server(sink: MailSink) -> None:
    sender = plain(sink)
    outcome = sent(sender, "fine-whole@b.example", id="a" * 32)
    sender.close()
    (accepted,) = to_address(sink, "fine-whole@b.example")
    assert accepted.message == mail("fine-whole@b.example", "a" * 32).data["message"].decode()
    assert accepted.id == "a" * 32 + "@shop.example"
    assert accepted.sender == "news@shop.example"
    assert isinstance(outcome, Outcome)
    assert outcome.properties["provider"] == "smtp"
    assert outcome.properties["provider_id"].startswith("S")
    assert outcome.properties["message"] == "a" * 32


def test_mails_of_one_thread_share_a_connection_and_a_closed_one_is_replaced(sink: MailSink) -> None:
    sender = plain(sink)
    sent(sender, "fine-c1@b.example")
    sent(sender, "fine-c2@b.example")
    sent(sender, "closing-c3@b.example")  # on a connection that was idle: the server may close it at any time
    sent(sender, "fine-c4@b.example")
    sender.close()
    numbers = {each.to: each.connection for each in sink.accepted() if each.to.endswith("b.example")}
    assert numbers["fine-c1@b.example"] == numbers["fine-c2@b.example"]
    assert numbers["fine-c2@b.example"] != numbers["closing-c3@b.example"]
    assert numbers["closing-c3@b.example"] == numbers["fine-c4@b.example"]


def test_a_mail_that_cannot_be_sent_costs_no_connection(sink: MailSink) -> None:
    sender = plain(sink)
    sent(sender, "fine-u1@b.example")
    sent(sender, "fine-u2@b.example", **{"from": "a b@c.example"})
    sent(sender, "fine-u3@b.example")
    sender.close()
    assert (
        len({each.connection for each in sink.accepted() if each.to in ("fine-u1@b.example", "fine-u3@b.example")}) == 1
    )


def test_an_old_connection_is_not_used_again(sink: MailSink, monkeypatch: pytest.MonkeyPatch) -> None:
    sender = plain(sink)
    sent(sender, "fine-o1@b.example")
    monkeypatch.setattr(smtp, "IDLE_SECONDS_MAX", -1.0)
    sent(sender, "fine-o2@b.example")
    sender.close()
    assert (
        len({each.connection for each in sink.accepted() if each.to in ("fine-o1@b.example", "fine-o2@b.example")}) == 2
    )


@pytest.mark.parametrize("features", ["PIPELINING,8BITMIME,SMTPUTF8", "8BITMIME"])
@settings(max_examples=5, deadline=None)
@given(st.data())
def test_whatever_came_before_a_mail_that_may_be_sent_again_was_not_accepted(
    tmp_path_factory: pytest.TempPathFactory, features: str, data: st.DataObject
) -> None:
    wanted = data.draw(st.lists(st.sampled_from(sorted(FIRST.keys() - {"silent", "slow"})), min_size=8, max_size=30))
    with mail_sink(tmp_path_factory.mktemp("law"), features=features) as sink:
        sender = plain(sink, timeout="2")
        expected: dict[str, int] = {}
        unknown = set()
        for number, behaviour in enumerate(wanted):
            to = f"{behaviour}-{number}@b.example"
            outcome = sent(sender, to)
            unknown |= {to} if outcome == UNKNOWN else set()
            expected[to] = int(isinstance(outcome, Outcome) and outcome.type == "mail_sent")
            # A connection that had been idle is replaced and the attempt repeated: a drop shows on the next one.
            if isinstance(outcome, Outcome) and outcome.type == EFFECT_RETRIED:
                assert len(to_address(sink, to)) == 0
        sender.close()
        for to, count in expected.items():
            assert len(to_address(sink, to)) == count or (to in unknown and len(to_address(sink, to)) <= 1)


# --- TLS and logging in ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MailSink, Path]]:
    folder = tmp_path_factory.mktemp("tls")
    file = certificate(folder)
    with mail_sink(folder, certificate=str(file), login=LOGIN) as sink:
        yield sink, file


def test_a_login_goes_over_starttls(secured: tuple[MailSink, Path]) -> None:
    sink, file = secured
    sender = sender_of(f"smtp://shop:secret%25@127.0.0.1:{sink.port}?ca={file}")
    assert kind_of(sent(sender, "fine-1@b.example"))[0] == "mail_sent"
    sender.close()


@pytest.mark.parametrize(
    ("user", "option", "step"),
    [("shop:wrong@", "ca={file}", "login"), ("", "ca={file}", "mail"), ("shop:secret%25@", "", "error")],
)
def test_a_login_or_certificate_that_is_not_right_counts_as_a_failure_of_the_server(
    secured: tuple[MailSink, Path], user: str, option: str, step: str
) -> None:
    sink, file = secured
    sender = sender_of(f"smtp://{user}127.0.0.1:{sink.port}?{option.format(file=file)}")
    outcome = sent(sender, "fine-2@b.example")
    assert isinstance(outcome, Outcome)
    assert kind_of(outcome) == (EFFECT_RETRIED, "failing")
    assert outcome.properties.get("step", "error") == step
    assert "CERTIFICATE_VERIFY_FAILED" in outcome.properties.get("error", "") or step != "error"
    assert to_address(sink, "fine-2@b.example") == []
    sender.close()


def test_without_starttls_nothing_is_sent(sink: MailSink) -> None:
    sender = sender_of(f"smtp://shop:secret@127.0.0.1:{sink.port}")
    outcome = sent(sender, "fine-clear@b.example")
    assert isinstance(outcome, Outcome)
    assert kind_of(outcome) == (EFFECT_RETRIED, "failing")
    assert "no STARTTLS" in outcome.properties["text"]
    assert to_address(sink, "fine-clear@b.example") == []


def test_smtps_speaks_tls_from_the_first_byte(tmp_path: Path) -> None:
    file = certificate(tmp_path)
    with mail_sink(tmp_path, certificate=str(file), implicit=True) as sink:
        sender = sender_of(f"smtps://127.0.0.1:{sink.port}?ca={file}")
        assert kind_of(sent(sender, "fine-1@b.example"))[0] == "mail_sent"
        sender.close()


# --- what a server can carry -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "more", "why"),
    [
        ("PIPELINING", {"smtputf8": True}, "SMTPUTF8"),
        ("PIPELINING", {"message": "Subject: é\r\n\r\n".encode()}, "8BITMIME"),
        ("SIZE 20", {}, "the server takes 20"),
        ("8BITMIME", {"from": "a@b.example>\r\nRCPT TO:<c@d.example"}, "cannot stand in an envelope"),
        ("8BITMIME", {"from": "a b@c.example"}, "cannot stand in an envelope"),
        ("8BITMIME,SMTPUTF8", {"from": "a\ud800@c.example"}, "cannot stand in an envelope"),
    ],
)
def test_what_the_server_cannot_carry_is_parked_with_the_reason(
    tmp_path: Path, features: str, more: dict[str, Any], why: str
) -> None:
    with mail_sink(tmp_path, features=features) as sink:
        sender = plain(sink)
        outcome = sent(sender, "fine-1@b.example", **more)
        sender.close()
        assert isinstance(outcome, Outcome)
        assert why in outcome.parked
        assert sink.accepted() == []


def test_addresses_in_utf8_and_eight_bits_arrive_where_the_server_takes_them(sink: MailSink) -> None:
    sender = plain(sink)
    message = "Subject: Größe\r\n\r\nà\r\n".encode()
    assert kind_of(sent(sender, "fine-größe@b.example", message=message))[0] == "mail_sent"
    sender.close()
    (accepted,) = to_address(sink, "fine-größe@b.example")
    assert accepted.message.encode("latin-1") == message


def test_a_refused_sender_counts_as_a_failure_of_the_queue(sink: MailSink) -> None:
    sender = plain(sink)
    outcome = sent(sender, "fine-1@b.example", **{"from": "refused@shop.example"})
    assert isinstance(outcome, Outcome)
    assert (outcome.parked[:22], outcome.destination) == ("the server refused it ", "failing")
    assert kind_of(sent(sender, "fine-after@b.example"))[0] == "mail_sent"
    sender.close()


def test_nobody_listening_counts_as_a_failure_of_the_server() -> None:
    assert kind_of(sent(sender_of("smtp://127.0.0.1:1?tls=off"), "a@b.example")) == (EFFECT_RETRIED, "failing")


@given(st.lists(st.sampled_from([b"a", b".", b"\r", b"\n", b"\r\n", b"..", b"\r\n.\r\n"]), max_size=12))
def test_a_stuffed_message_ends_nowhere_early_and_unstuffs_to_its_lines(parts: list[bytes]) -> None:
    message = b"".join(parts)
    stuffed = _stuffed(message)
    assert stuffed.endswith(b"\r\n")
    lines = stuffed.split(b"\r\n")[:-1]
    assert not any(line == b"." or b"\r" in line or b"\n" in line for line in lines)
    received = [line[1:] if line.startswith(b".") else line for line in lines]
    # Python's own idea of lines, of text whose only line ends these are.
    assert received == (message.splitlines() or [b""])


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("smtp://shop:secret@mail.example?tls=off", "a password would be sent in clear"),
        ("smtp://mail.example?tsl=off", "no option 'tsl'"),
        ("smtp://mail.example?tls=never", "tls=never"),
        ("smtp://mail.example?timeout=60", "timeout is 1 to 12 seconds"),
        ("smtp://mail.example:port", "cannot be read"),
        ("smtps://mail.example?ca=/nowhere", "/nowhere"),
        ("mail.example", "none that we know"),
        ("sendgrid://secret", "none that we know"),
        ("env:MAIL_PROVIDER", "env:MAIL_PROVIDER, which is not set"),
    ],
)
def test_a_provider_that_cannot_be_used_is_refused_without_its_password(url: str, message: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        sender_of(url)
    assert message in str(refusal.value)
    assert "secret" not in str(refusal.value)
