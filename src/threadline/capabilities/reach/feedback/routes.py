"""The public addresses of feedback: links that count clicks, the pixel that counts opens, and the webhook of SNS.

A fetch is recorded by GET: that it was asked for is what has happened. Where a click leads is
signed, so nobody can make these links lead elsewhere.
"""

from __future__ import annotations

from base64 import b64decode
from urllib.parse import quote

from threadline.capabilities.reach.feedback.definition import FeedbackRules
from threadline.capabilities.reach.feedback.finding import find_mail
from threadline.capabilities.reach.feedback.links import CLICK, OPEN
from threadline.capabilities.reach.feedback.machines import AGENT_LENGTH_MAX, machine
from threadline.capabilities.reach.feedback.notifications import Certificates, take_envelope
from threadline.capabilities.reach.feedback.recording import record
from threadline.kernel.errors import NotFound, ThreadlineError
from threadline.kernel.event import is_workspace
from threadline.kernel.ids import short_hash
from threadline.kernel.ports import Ports
from threadline.kernel.public_route import PublicAnswer, PublicRequest, PublicRoute
from threadline.wire.feedback import Feedback, Kind

MANY_PER_MINUTE = 6_000
"""Links and pixels from one address: a mailbox provider or a company's gateway fetches those of many people."""
SAME_PER_MINUTE = 60
"""One link of one mail: no person follows it more often."""
NOTIFICATIONS_PER_MINUTE = 60_000
"""Amazon SNS sends the fates of all mails from a few addresses, and again what was refused."""
PIXEL = b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
"""A transparent GIF of 1 by 1."""
_NO_STORE = {"cache-control": "no-store, private, max-age=0", "pragma": "no-cache"}
_GONE = b"<!doctype html><title>Link</title><p>This link is not complete. Please open it once more from the mail."
_EMPTY = b"<!doctype html><title>Link</title>"


def routes(rules: FeedbackRules) -> list[PublicRoute]:
    """The links, the pixel and the webhook."""
    certificates = Certificates()

    def click(engine: Ports, request: PublicRequest) -> PublicAnswer:
        signed = engine.signer.read(CLICK, request.path["token"])
        if signed is None:
            return PublicAnswer(_GONE, status=404)
        message, link = map(str, signed.values)
        _note(engine, request, signed.workspace, message, "clicked", link)
        if not link:
            return PublicAnswer(_EMPTY)
        return PublicAnswer(status=302, headers={**_NO_STORE, "location": location(link)})

    def opened(engine: Ports, request: PublicRequest) -> PublicAnswer:
        signed = engine.signer.read(OPEN, request.path["token"].removesuffix(".gif"))
        if signed is not None:
            _note(engine, request, signed.workspace, str(signed.values[0]), "opened", "")
        return PublicAnswer(PIXEL, "image/gif", headers=_NO_STORE)

    def sns(engine: Ports, request: PublicRequest) -> PublicAnswer:
        workspace = request.path["workspace"]
        if not is_workspace(workspace):
            raise NotFound("the path names no workspace")
        take_envelope(engine, workspace, request.body, rules.topics, certificates)
        return PublicAnswer(b"", "text/plain; charset=utf-8")

    return [
        PublicRoute(
            "mail_click",
            "Record a click and lead to the link.",
            "GET",
            "/m/c/{token}",
            click,
            records=True,
            per_minute=MANY_PER_MINUTE,
            same_per_minute=SAME_PER_MINUTE,
        ),
        PublicRoute(
            "mail_open",
            "Record an open and show a pixel.",
            "GET",
            "/m/o/{token}",
            opened,
            records=True,
            per_minute=MANY_PER_MINUTE,
            same_per_minute=SAME_PER_MINUTE,
        ),
        PublicRoute(
            "mail_sns",
            "Take a message of Amazon SNS.",
            "POST",
            "/m/sns/{workspace}",
            sns,
            per_minute=NOTIFICATIONS_PER_MINUTE,
        ),
    ]


def location(link: str) -> str:
    """A link as a header may hold it."""
    return quote(link, safe="!#$%&'()*+,/:;=?@[]~-._")


def _note(engine: Ports, request: PublicRequest, workspace: str, message: str, kind: Kind, link: str) -> None:
    """Record it. Whatever is wrong with the store, the person gets to where the link leads."""
    try:
        at = engine.recorder.clock()
        sent = find_mail(engine, workspace, [f"{message}@"])
        if sent is None:
            return
        agent = request.headers.get("user-agent", "")[:AGENT_LENGTH_MAX]
        why = machine(request.method, request.headers, opened=kind == "opened")
        if not why and kind == "clicked" and not link:
            why = "honeypot"
        details = {"agent": agent, **({"link": link} if kind == "clicked" else {}), **({"why": why} if why else {})}
        key = short_hash("own", kind, message, link, str(at), agent)
        record(engine, sent, Feedback(kind, key, at, (), details=details))
    except ThreadlineError:
        return
