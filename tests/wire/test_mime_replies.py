"""Of a reply its author's words, whatever program quotes below them; what is no reply is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from threadline.wire.mime.mail import read_mail
from threadline.wire.mime.reply_text import visible

REPLIES = Path(__file__).parent.parent / "data" / "replies"
VISIBLE = {
    # file: how it begins, how it ends, what may not be in it
    "correct_sig.txt": ("this is an email with a correct -- signature.", "signature.", "rick"),
    "email_1_1.txt": ("Hi folks", "-Abhishek Kona", "mailing list"),
    "email_1_2.txt": ("Hi,", 'individually."', "riak-users mailing list"),
    "email_1_3.txt": ("Oh thanks.", "-Abhishek Kona", ">"),
    "email_1_4.txt": ("Awesome!", "another problem with it.", "wrote:"),
    "email_1_5.txt": ("One: Here's what I've got.", "for a while.", ">"),
    "email_1_6.txt": ("I get proper rendering as well.", "as well.", "Sent from"),
    "email_1_7.txt": (":+1:", ":+1:", "wrote"),
    "email_1_8.txt": ("On Tue, Apr 29, 2014 at 4:22 PM", None, "\0"),
    "email_2_1.txt": ("Outlook with a reply", "reply", "From:"),
    "email_2_2.txt": ("Outlook with a reply directly above line", "line", "From:"),
    "email_2_3.txt": ("Outlook with a reply directly above line", "line", "From:"),
    "email_BlackBerry.txt": ("Here is another email", "email", "Sent from"),
    "email_bullets.txt": ("test 2 this should list second", "and another", "Joe Smith"),
    "email_iPhone.txt": ("Here is another email", "email", "Sent from"),
    "email_long_quote.txt": ("Hi folks", "-Abhishek Kona", "\0"),
    "email_multi_word_sent_from_my_mobile_device.txt": ("Here is another email", "email", "Sent from"),
    "email_one_is_not_on.txt": ("Thank, this is really helpful.", "when I run...", "wrote:"),
    "email_sent_from_my_not_signature.txt": ("Here is another email", "my mobile phone.", "\0"),
    "email_sig_delimiter_in_middle_of_line.txt": ("Hi there!", "kthxbai", "\0"),
    "greedy_on.txt": ("On your remote host you can run:", "not working.", "wrote:"),
    "pathological.txt": ("I think you're onto something.", "get back to a computer.", "organism"),
}


@pytest.mark.parametrize("name", VISIBLE)
def test_visible_part_of_a_reply(name):
    begins, ends, absent = VISIBLE[name]
    found = visible((REPLIES / name).read_text())
    assert found.startswith(begins)
    assert ends is None or found.endswith(ends)
    assert absent not in found


def test_every_reply_of_the_collection_is_tried():
    assert {path.name for path in REPLIES.glob("*.txt")} == set(VISIBLE)


@pytest.mark.parametrize(
    "quoted",
    [
        "On Tue, 3 Mar 2026 at 10:00, Shop <news@shop.example> wrote:\n> Hello",
        "Am Di., 3. März 2026 um 10:00 Uhr schrieb Shop <news@shop.example>:\n> Hallo",
        "Le mar. 3 mars 2026 à 10:00, Shop <news@shop.example> a écrit :\n> Bonjour",
        "El mar, 3 mar 2026 a las 10:00, Shop (<news@shop.example>) escribió:\n> Hola",
        "Il giorno mar 3 mar 2026 alle ore 10:00 Shop <news@shop.example>\nha scritto:\n> Ciao",
        "Op di 3 mrt 2026 om 10:00 schreef Shop <news@shop.example>:\n> Hallo",
        "вт, 3 мар. 2026 г. в 10:00, Shop <news@shop.example> написал:\n> Привет",
        "2026年3月3日(火) 10:00 Shop <news@shop.example> のメール:\n> こんにちは",
        "-----Original Message-----\nFrom: Shop\nHello",
        "-----Ursprüngliche Nachricht-----\nVon: Shop\nHallo",
        "________________________________\nFrom: Shop <news@shop.example>\nSent: Tuesday\nTo: Ada\nSubject: Hello",
        "Von: Shop <news@shop.example>\nGesendet: Dienstag\nAn: Ada\nBetreff: Hallo\n\nHallo",
    ],
)
def test_quote_of_a_mail_program_is_not_visible(quoted):
    assert visible(f"Thanks, that helps.\nAda\n\n{quoted}\n> more\n") == "Thanks, that helps.\nAda"


@pytest.mark.parametrize(
    "header",
    [
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-generated; type=vacation",
        "Precedence: bulk",
        "Precedence: auto_reply",
        "X-Autoreply: yes",
        "X-Autorespond: x",
        "Return-Path: <>",
        "Subject: Out of Office: Hello",
        "Subject: Automatic reply: Hello",
        "Subject: Abwesenheitsnotiz",
        "Subject: =?utf-8?q?R=C3=A9ponse_automatique?= : Hello",
        "Content-Type: multipart/report; report-type=disposition-notification; boundary=b",
    ],
)
def test_automatic_reply_is_no_reply(header):
    head = f"From: ada@example.com\r\nIn-Reply-To: <1@shop.example>\r\n{header}\r\n\r\n"
    body = "--b\r\nContent-Type: message/disposition-notification\r\n\r\nDisposition: x\r\n--b--\r\n"
    assert read_mail((head + body).encode()).kind == "auto_reply"


def test_reply_names_what_it_answers_and_its_words():
    raw = (
        "Return-Path: <ada@example.com>\r\nAuto-Submitted: no\r\nFrom: =?utf-8?q?Ad=C3=A4?= <ada@example.com>\r\n"
        "To: Shop <reply+0123456789abcdef0123456789abcdef@shop.example>\r\nMessage-ID: <r1@example.com>\r\n"
        "In-Reply-To: <2@shop.example>\r\nReferences: <1@shop.example> <2@shop.example>\r\nSubject: Re: Hello\r\n"
        'Content-Type: multipart/alternative; boundary="b"\r\n\r\n--b\r\nContent-Type: text/html\r\n\r\n<p>Yes!</p>\r\n'
        "--b\r\nContent-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n"
        "J=E4, bitte!\r\n\r\n-- =\r\n\r\nAda\r\n--b--\r\n"
    )
    mail = read_mail(raw.encode(), ["bounce+x@shop.example"])
    assert (mail.kind, mail.text, mail.sender, mail.id) == ("reply", "Jä, bitte!", "ada@example.com", "r1@example.com")
    assert mail.about == ("2@shop.example", "1@shop.example")
    assert mail.to == ("bounce+x@shop.example", "reply+0123456789abcdef0123456789abcdef@shop.example")


REPORT = """From: <{sender}>
To: bounces@shop.example
Subject: complaint
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b
Content-Type: text/plain

This is an email abuse report.
--b
Content-Type: message/feedback-report

Feedback-Type: {type}
User-Agent: SomeGenerator/1.0
Version: 1
{fields}
--b
Content-Type: message/rfc822

From: news@shop.example
To: Ada <ada@example.com>
Message-ID: <0123456789abcdef0123456789abcdef@shop.example>
Subject: Hello

Hello
--b--
"""


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        ("abuse", "complaint"),
        ("fraud", "complaint"),
        ("virus", "complaint"),
        ("other", "complaint"),
        ("Abuse", "complaint"),
        ("not-spam", "other"),
        ("auth-failure", "other"),
    ],
)
@pytest.mark.parametrize("fields", ["Original-Rcpt-To: <ada@example.com>", "Removal-Recipient: ada@example.com", ""])
def test_complaint_names_the_mail_and_the_recipient(type, kind, fields):
    raw = REPORT.format(sender="fbl@isp.example", type=type, fields=fields).replace("\n", "\r\n").encode()
    mail = read_mail(raw)
    assert mail.kind == kind
    assert mail.about[0] == "0123456789abcdef0123456789abcdef@shop.example"
    assert [each.address for each in mail.recipients] == ["ada@example.com"]
