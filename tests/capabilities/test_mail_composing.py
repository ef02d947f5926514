"""Messages on the wire: whatever a template was filled with, the standard library reads back what was meant."""

from __future__ import annotations

import re
from email import message_from_bytes
from email.header import decode_header, make_header
from email.utils import parseaddr
from functools import cache
from pathlib import Path

import dkim
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.capabilities.mail_stage import SHOP, MailStage, parsed
from threadline.capabilities.reach.mail.message import LINE_OCTETS_MAX, Address, Header, Parties, address_of, compose
from threadline.capabilities.reach.mail.plain_text import text_of
from threadline.capabilities.reach.mail.templates import Rendered
from threadline.kernel.address import parse_address
from threadline.kernel.errors import InvalidAddress, InvalidValue

ID = "ab" * 16
AT = 1_772_445_600_000_000
READABLE = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=200)
BODIES = st.text(st.one_of(st.characters(exclude_categories=("Cs",)), st.sampled_from("\r\n=. \t")), max_size=300)


def composed(
    subject: str = "Hello", name: str = "Shop", html: str = "", text: str = "Hi", to: str = "a@b.example"
) -> bytes:
    recipient = address_of(to)
    assert recipient is not None
    parties = Parties(name, Address("hello@shop.example", False), recipient)
    return compose(parties, Rendered(subject, html, text), f"{ID}@shop.example", AT, [Header("List-Id", "<n.shop>")])


def lines_of(text: str) -> list[str]:
    return re.split("\r\n|\r|\n", text.rstrip("\r\n"))


@settings(max_examples=60)
@given(subject=READABLE, name=READABLE, html=BODIES, text=BODIES)
@example("=?utf-8?b?aGk=?=", 'A "quoted" \\ name, <x@y>', "<p>.</p>\n.\nFrom me", "a" * 3_000)
@example("word " * 60, "é" * 100, "x", "tab\t \r\r\n trailing  ")
def test_what_is_composed_is_read_back(subject: str, name: str, html: str, text: str) -> None:
    subject, name = " ".join(subject.split()) or "s", " ".join(name.split()) or "n"
    message = composed(subject, name, html, text)
    assert b"\n" not in message.replace(b"\r\n", b"")
    assert b"\r" not in message.replace(b"\r\n", b"")
    assert max(map(len, message.split(b"\r\n"))) <= LINE_OCTETS_MAX
    assert message.isascii()
    read = parsed(message)
    assert not read.defects
    assert [name for name, _ in read.items() if name not in ("Content-Type", "Content-Transfer-Encoding")] == [
        "From",
        "To",
        "Subject",
        "Date",
        "Message-ID",
        "List-Id",
        "MIME-Version",
    ]
    assert str(read["Subject"]) == subject
    # Of encoded words in a name the newer parser of the standard library leaves the blanks between; the older one is
    # right.
    written, address = parseaddr(re.sub("\r\n", "", str(message_from_bytes(message)["From"])))
    assert (str(make_header(decode_header(written))), address) == (name, "hello@shop.example")
    assert read["Message-ID"] == f"<{ID}@shop.example>"
    plain, rich = read.get_body(("plain",)), read.get_body(("html",))
    assert plain is not None
    assert lines_of(plain.get_content()) == lines_of(text)
    if html:
        assert rich is not None
        assert lines_of(rich.get_content()) == lines_of(html)
    for line in message.partition(b"\r\n\r\n")[2].split(b"\r\n"):
        assert len(line) <= 76 or line.startswith(b"Content-Type")


@pytest.mark.parametrize("break_", ["\r\n", "\n", "\r", "\x00", "\x0b"])
def test_a_line_break_in_a_header_is_refused(break_: str) -> None:
    parties = Parties("", Address("hello@shop.example", False), Address("a@b.example", False))
    with pytest.raises(InvalidValue, match="line break"):
        compose(
            parties, Rendered("s", "", "t"), f"{ID}@x", AT, [Header("Reply-To", f"a@b.example{break_}Bcc: c@d.example")]
        )


@pytest.mark.parametrize("subject", ["a\r\nBcc: evil@example.com", "a\nBcc: evil@example.com", "a\x85\u2028b"])
def test_a_line_break_in_what_fills_a_subject_becomes_a_blank(subject: str) -> None:
    stage = MailStage()
    stage.person(first_name=subject)
    stage.send()
    [message] = stage.box.messages
    assert "Bcc" not in message
    assert str(message["Subject"]) == "Welcome " + re.sub("[\r\n\x85\u2028]+", " ", subject)


@pytest.mark.parametrize(
    ("text", "mailbox", "smtputf8"),
    [
        (" Ada@Example.COM ", "Ada@example.com", False),
        ("ada@faß.example", "ada@xn--fa-hia.example", False),
        ("ada@straße.example", "ada@xn--strae-oqa.example", False),
        ("ada@BÜCHER.example", "ada@xn--bcher-kva.example", False),
        ("ada@例え。jp", "ada@xn--r8jz45g.jp", False),
        ("jörg@example.com", "jörg@example.com", True),
        ("a+b/c=d@example.com", "a+b/c=d@example.com", False),
    ],
)
def test_addresses(text: str, mailbox: str, smtputf8: bool) -> None:
    found = address_of(text)
    assert found is not None
    assert found.smtputf8 is smtputf8
    assert found.mailbox == mailbox


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ada",
        "@b.example",
        "a@",
        "a@b",
        "a b@c.example",
        "a@b.example\r\nBcc: c@d.example",
        "a@b..example",
        "<a@b.example>",
        "a@b.example,c@d.example",
        ".a@b.example",
        "a..b@c.example",
        "a" * 65 + "@b.example",
        "a@-b.example",
        "a@1.2.3.4",
        "a@" + "b" * 64 + ".example",
        '"a b"@c.example',
    ],
)
def test_what_is_no_address(text: str) -> None:
    assert address_of(text) is None
    with pytest.raises(InvalidAddress):
        parse_address(text)


def test_a_utf_8_address_stands_in_the_header_as_it_is() -> None:
    message = composed(to="jörg@example.com")
    assert "To: jörg@example.com\r\n".encode() in message


@cache
def private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def record_of_dns(name: bytes, timeout: float = 5) -> bytes:
    assert name == b"s1._domainkey.shop.example."
    public = (
        private_key()
        .public_key()
        .public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    import base64

    return b"v=DKIM1; k=rsa; p=" + base64.b64encode(public)


def test_a_signature_covers_both_headers_of_unsubscribing(tmp_path: Path) -> None:
    pem = private_key().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    (tmp_path / "s1.pem").write_bytes(pem)
    stage = MailStage(
        SHOP.replace("name: The Shop", "name: Die größte, dkim: {selector: s1, key_file: s1.pem}"), tmp_path
    )
    stage.person("a" * 60, first_name="Ä" * 200)
    stage.send(who="a" * 60)
    message = stage.box.sent[0]["message"]
    assert dkim.verify(message, dnsfunc=record_of_dns)
    signature = str(parsed(message)["DKIM-Signature"]).replace(" ", "").lower()
    signed = re.search("h=([^;]+);", signature)
    assert signed is not None
    assert {"list-unsubscribe", "list-unsubscribe-post", "from"} <= set(signed[1].split(":"))
    for header in (b"List-Unsubscribe: <http", b"List-Unsubscribe-Post: List", b"Subject: =?"):
        assert header in message
        assert not dkim.verify(message.replace(header, header[:-1] + b"_"), dnsfunc=record_of_dns)


def test_a_missing_key_sends_nothing_and_is_tried_again(tmp_path: Path) -> None:
    stage = MailStage(SHOP.replace("name: The Shop", "dkim: {selector: s1, key_file: none.pem}"), tmp_path)
    stage.person()
    stage.send()
    assert stage.box.sent == []
    [(type, properties)] = stage.outcomes()
    assert type == "threadline.effect_retried"
    assert "cannot sign with" in properties["error"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One</p><p>Two</p>", "One\n\nTwo"),
        ("<div>One</div><div>Two</div>", "One\nTwo"),
        ("a<br>b", "a\nb"),
        ("<ul><li>One<li>Two</ul>", "- One\n- Two"),
        ("<ol><li>One</li><li>Two</li></ol>", "1. One\n2. Two"),
        ("<a href='https://x.example'>Here</a>", "Here (https://x.example)"),
        ("<a href='https://x.example'>https://x.example</a>", "https://x.example"),
        ("<a href='#top'>Up</a>", "Up"),
        ("<a href='mailto:a@b.example'>a@b.example</a>", "a@b.example"),
        ("<head><title>T</title><style>p{}</style></head><body>x</body>", "x"),
        ("<div style='display:none'>hidden<br>too</div>shown", "shown"),
        ("<img src=x alt=Logo> &amp; more", "[Logo] & more"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
        ("  much \n\n\n white  ", "much white"),
        ("<p>a\x00b\x01</p>", "ab"),
    ],
)
def test_the_text_of_html(html: str, text: str) -> None:
    assert text_of(html) == text + "\n"
