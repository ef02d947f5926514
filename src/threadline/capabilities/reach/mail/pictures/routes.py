"""The address of a picture: whoever has a mail may load it, and programs keep it for as long as they like."""

from __future__ import annotations

from threadline.capabilities.reach.mail.pictures.stored import content_of
from threadline.kernel.ports import Ports
from threadline.kernel.public_route import PublicAnswer, PublicRequest, PublicRoute

FOLDER = "/pictures"
PATH = f"{FOLDER}/{{file}}"
MANY_PER_MINUTE = 60_000
"""A mailbox provider loads the pictures of all its readers from a few addresses."""
_HEADERS = {
    "cache-control": "public, max-age=31536000, immutable",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "cross-origin",
}
"""An address shows the same picture for ever, wherever it stands."""


def _show(engine: Ports, request: PublicRequest) -> PublicAnswer:
    file = request.path["file"]
    mark = f'"{file}"'
    content = content_of(engine.store, file)
    if content is None:
        return PublicAnswer(b"There is no such picture.\n", "text/plain; charset=utf-8", 404)
    headers = {**_HEADERS, "etag": mark}
    if mark in request.headers.get("if-none-match", ""):
        return PublicAnswer(b"", content[1], 304, headers)
    return PublicAnswer(content[0], content[1], headers=headers)


ROUTE = PublicRoute("mail_picture", "Show a picture of mails.", "GET", PATH, _show, per_minute=MANY_PER_MINUTE)
