"""An engine whose mail goes to the development inbox, and mails as shops send them."""

from __future__ import annotations

from email.message import EmailMessage
from types import SimpleNamespace
from typing import Any

from tests.senders.mails import mail
from tests.surfaces.conftest import Clock
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.profile.people.definition import rules
from threadline.engine.engine import Engine
from threadline.engine.folding.catalogue import Catalogue, discover
from threadline.kernel.sender import Outcome, Queue, Sender
from threadline.kernel.time import SECOND
from threadline.senders.mail import make_sender
from threadline.stores.memory import MemoryStore

HTML = """<!doctype html><html><head><style>p { color: rgb(1, 2, 3) } h1 { font: 700 28px Georgia }</style></head>
<body style="margin:0;font:16px Helvetica,sans-serif"><script>document.title = 'ran'</script>
<div style="background:#00734f;color:#fff;padding:28px"><h1 style="margin:0">Your order is on its way</h1></div>
<div style="padding:24px;max-width:600px"><p>Hello Ana, <b>three records</b> left our house today.</p>
<p><a href="https://shop.example/track?id=7&amp;of=ana" style="background:#00734f;color:#fff;padding:10px 18px;
border-radius:6px;text-decoration:none">Follow it</a></p>
<p><a href='https://shop.example/help'>Questions?</a></p></div></body></html>"""


def inbox_engine(clock: Clock, provider: str = "inbox:") -> Engine:
    """Without the section `mail`: its queue alone."""
    queue = Queue("mail", kind="mail", destination=SimpleNamespace(url=provider, at_once=1), claims=True)
    found = [each for each in discover(definitions=Definitions()) if not _is_mail_queue(each)]
    return Engine(MemoryStore(), Catalogue([*found, queue], rules()), clock)


def _is_mail_queue(value: object) -> bool:
    return isinstance(value, Queue) and value.name == "mail"


def inbox_sender(engine: Engine) -> Sender:
    ports: Any = SimpleNamespace(store=engine.store, clock=engine.clock, environment=lambda name: "")
    return make_sender("inbox:", ports, 1)


def letter(to: str, subject: str = "Your order is on its way") -> bytes:
    """A mail with two texts and an attachment."""
    message = EmailMessage()
    message["From"] = "Shop <news@shop.example>"
    message["To"] = to
    message["Subject"] = subject
    message.set_content("Hello Ana, three records left our house today.\n")
    message.add_alternative(HTML, subtype="html")
    message.add_attachment(b"%PDF-1.7", maintype="application", subtype="pdf", filename="invoice.pdf")
    return message.as_bytes().replace(b"\n", b"\r\n")


def deliver(engine: Engine, clock: Clock, sender: Sender, number: int, to: str, **more: Any) -> Outcome:
    """Send one, a second after the one before."""
    clock.now += SECOND
    id = f"{number:032x}"
    subject = more.pop("subject", "Your order is on its way")
    effect = mail(to, id, **{"message": letter(to, subject), **more})
    effect.data["record"]["subject"] = subject
    return sender.send(effect, id, "thread")
