"""Raw mails of real servers read as what they are; whatever the bytes, reading ends soon and raises nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.wire.mime import parts
from threadline.wire.mime.delivery_status import Recipient
from threadline.wire.mime.mail import Mail, read_mail

DATA = Path(__file__).parent.parent / "data"
BOUNCES = DATA / "bounces"
EXPECTED = json.loads((BOUNCES / "expected.json").read_text())
RAW = {path.name: path.read_bytes() for path in sorted((BOUNCES / "eml").iterdir())}


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda each: each["file"])
def test_bounce_of_a_real_server_names_who_failed_and_who_is_still_tried(expected):
    mail = read_mail(RAW[expected["file"]])
    assert {each.address for each in mail.recipients if each.action == "failed"} == set(expected["permanent"])
    assert {each.address for each in mail.recipients if each.action == "delayed"} == set(expected["temporary"])
    kind = "bounce" if expected["permanent"] else "delay" if expected["temporary"] else None
    assert mail.kind == kind if kind else mail.kind in ("reply", "auto_reply", "other")


def permanent(mail: Mail) -> list[str]:
    """The addresses that a mail says are to blame."""
    return [each.address for each in mail.recipients if each.action == "failed" and each.bounce == "permanent"]


def test_bounce_that_names_nobody_suppresses_nobody():
    others = set(RAW) - {each["file"] for each in EXPECTED}
    assert others
    for name in others:
        assert permanent(read_mail(RAW[name])) == []


def test_delay_or_full_mailbox_is_not_permanent_and_an_unknown_user_is():
    full = [
        "yahoo_02",
        "qmail_02",
        "qmail_06",
        "hotpop_01",
        "simple_07",
        "simple_45",
        "newmailru_01",
        "dsn_01",
        "dsn_02",
    ]
    gone = ["qmail_03", "qmail_04", "postfix_01", "dsn_11", "dsn_12", "yahoo_10", "exim_01", "simple_08", "simple_34"]
    assert [name for name in full if permanent(read_mail(RAW[f"{name}.txt"]))] == []
    assert [name for name in gone if not permanent(read_mail(RAW[f"{name}.txt"]))] == []
    for name, raw in RAW.items():
        for each in read_mail(raw).recipients:
            assert each.bounce != "permanent" or not re.match(r"4\.[1-9]|5\.[2367]\.[2-9]", each.code), name


@pytest.mark.parametrize(
    ("code", "text", "bounce"),
    [
        ("5.1.1", "", "permanent"),
        ("5.1.10", "", "permanent"),
        ("5.4.4", "Host not found", "permanent"),
        ("5.2.1", "", "permanent"),
        ("5.0.0", "550 no such user", "permanent"),
        ("", "mailbox unknown", "permanent"),
        ("", "", "transient"),
        ("5.0.0", "", "transient"),
        ("4.4.7", "expired", "transient"),
        ("4.2.2", "user unknown", "transient"),
        ("5.2.2", "", "transient"),
        ("", "mailbox full", "transient"),
        ("5.7.1", "blocked", "content"),
        ("5.3.4", "", "content"),
        ("", "message looks like spam", "content"),
        ("5.1.8", "", "content"),
    ],
)
def test_failure_is_because_of_the_address_of_what_passes_or_of_the_mail(code, text, bounce):
    assert Recipient("a@b.example", "failed", code, text).bounce == bounce


@pytest.mark.parametrize("name", sorted(RAW))
def test_bounce_that_a_person_forwards_or_quotes_is_none(name):
    head = (
        b"From: Ada Byron <ada@example.com>\r\nTo: reply@shop.example\r\nMessage-ID: <1@example.com>\r\nSubject: %s\r\n"
    )
    quoted = b"\r\n".join(b"> " + line for line in RAW[name].splitlines())
    plain = (
        head % b"Re: Undeliverable: your offer" + b"In-Reply-To: <x@shop.example>\r\n\r\nWhat is this?\r\n\r\n" + quoted
    )
    attached = (
        head % b"Fwd: failure notice"
        + b'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="=_f"\r\n\r\n--=_f\r\n\r\nSee:\r\n--=_f\r\n'
        + b"Content-Type: message/rfc822\r\n\r\n"
        + RAW[name]
        + b"\r\n--=_f--\r\n"
    )
    assert read_mail(plain).kind == read_mail(attached).kind == "reply"
    assert read_mail(plain).recipients == read_mail(attached).recipients == ()


def test_replies_and_crawlers_are_no_bounces():
    for path in sorted((DATA / "replies").glob("*.txt")):
        assert read_mail(b"From: ada@example.com\r\nSubject: Re: Hello\r\n\r\n" + path.read_bytes()).kind == "reply"


HEADERS = st.sampled_from(
    [
        b"From: MAILER-DAEMON@x.example",
        b"From: Ada <ada@x.example>",
        b"Content-Type: multipart/report; boundary=b",
        b"Content-Type: multipart/mixed; boundary=b",
        b"Content-Type: text/html; charset=\xff",
        b"Content-Type: message/rfc822",
        b"Content-Type: message/delivery-status",
        b"Content-Type: message/feedback-report",
        b"Return-Path: <>",
        b"Content-Transfer-Encoding: base64",
        b"Subject: =?nope?b?!!!?= =?utf-8?q?=ff?=",
        b"To: ((((((",
        b'To: "\\"',
        b"Auto-Submitted: auto-replied",
        b"References: <a@b> <",
        b"X-Failed-Recipients: a@b.example, \xff@",
    ]
)
LINES = st.sampled_from(
    [
        b"--b",
        b"--b--",
        b"",
        b"could not be delivered to the following recipient:",
        b"<a@b.example>:",
        b"Action: failed",
        b"Final-Recipient: rfc822; a@b.example",
        b"Status: 5.1.1",
        b"Feedback-Type: abuse",
        b"On 1, ada wrote:",
        b"> x",
        b"From: x",
        b"Received: y",
        b"\xff\xfe\x00",
        b"<style>",
        b"=?",
        b"@" * 50,
        b"-----Original Message-----",
        b"-- ",
    ]
)


@given(st.lists(HEADERS, max_size=8), st.lists(LINES | HEADERS, max_size=40))
def test_any_mail_is_read_as_something(headers, lines):
    mail = read_mail(b"\r\n".join([*headers, b"", *lines]))
    assert mail.kind in ("bounce", "delay", "delivered", "complaint", "reply", "auto_reply", "other")
    assert permanent(mail) == [] or mail.kind == "bounce"
    "\0".join((mail.subject, mail.text, mail.sender, *mail.about, *mail.to)).encode()


@given(st.binary(max_size=2_000))
def test_any_bytes_are_read_as_something(raw):
    assert read_mail(raw).recipients == () or b"@" in raw


MANY = 100_000
HOSTILE = {
    "nested": b"".join(b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (n, n) for n in range(3_000)),
    "wide": b"Content-Type: multipart/mixed; boundary=x\r\n\r\n" + b"--x\r\n\r\nhi\r\n" * MANY,
    "encoded words": b"Subject: " + b"=?utf-8?q?a?= " * MANY + b"\r\n\r\n",
    "headers": b"X: y\r\n" * MANY,
    "addresses": b"To: " + b"<a@b.c>," * MANY + b"\r\n\r\n",
    "comments": b"To: " + b"(" * MANY + b"\r\n\r\n",
    "parameters": b"Content-Type: text/plain;" + b' a*0*="x";' * MANY + b"\r\n\r\n",
    "codec": b"Content-Type: text/plain; charset=zlib_codec\r\n\r\n" + b"x" * MANY,
    "no boundary": b"Content-Type: multipart/report\r\n\r\n--x\r\n",
    "at signs": b"From: MAILER-DAEMON@x.y\r\n\r\ncould not be delivered\n" + b"@" * MANY,
    "quote headers": b"From: a@b.c\r\nSubject: x\r\n\r\n" + b"On 1, x y z a b c d e f 2 \n" * MANY,
    "styles": b"From: a@b.c\r\nContent-Type: text/html\r\n\r\n" + b"<style>" * MANY,
    "tags": b"From: a@b.c\r\nContent-Type: text/html\r\n\r\n" + b"<" * MANY,
    "reports": b"Content-Type: multipart/report; boundary=x\r\n\r\n--x\r\nContent-Type: message/delivery-status\r\n\r\n"
    + b"Action: failed\r\nFinal-Recipient: rfc822;a@b.c\r\n\r\n" * MANY,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_mail_takes_no_more_than_its_bounds(name, monkeypatch):
    read: list[int] = []
    kept = parts.read_part
    monkeypatch.setattr(parts, "read_part", lambda raw, depth=0: read.append(depth) or kept(raw, depth))
    mail = read_mail(HOSTILE[name])
    assert len(mail.recipients) <= 100
    assert len(read) <= parts.PARTS_MAX**2
    assert max(read, default=0) <= parts.DEPTH_MAX


def global_report(recipient: str) -> bytes:
    """A bounce as RFC 6533 has it, of a mail to an internationalised address."""
    return (
        "From: MAILER-DAEMON@mx.example\r\nTo: bounces@shop.example\r\nSubject: Delivery Status\r\n"
        'Content-Type: multipart/report; report-type=global-delivery-status; boundary="r"\r\n\r\n'
        "--r\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nsee below\r\n"
        "--r\r\nContent-Type: message/global-delivery-status\r\n\r\nReporting-MTA: dns; mx.example\r\n\r\n"
        f"Final-Recipient: {recipient}\r\nAction: failed\r\nStatus: 5.1.1\r\n"
        "Diagnostic-Code: smtp; 550 5.1.1 no such user\r\n\r\n"
        "--r\r\nContent-Type: message/global-headers\r\n\r\nMessage-ID: <m-1@shop.example>\r\n\r\n--r--\r\n"
    ).encode()


@pytest.mark.parametrize(
    ("recipient", "address"),
    [
        ("utf-8; jürgen@bücher.example", "jürgen@bücher.example"),
        (r"utf-8; j\x{FC}rgen@b\x{00FC}cher.example", "jürgen@bücher.example"),
        ("rfc822; ada@example.com", "ada@example.com"),
    ],
)
def test_bounce_of_internationalised_mail_names_who_failed_and_which_mail(recipient, address):
    mail = read_mail(global_report(recipient))
    assert (mail.kind, permanent(mail), mail.about) == ("bounce", [address], ("m-1@shop.example",))


@pytest.mark.parametrize("escaped", [r"\x{110000}", r"\x{}", r"\x{FFFFFFFFFF}", r"\x{D800}"])
def test_escape_that_is_no_character_leaves_a_report_readable(escaped):
    assert read_mail(global_report(f"utf-8; a{escaped}b@example.com")).kind in ("bounce", "other")
