"""What forms of browsers need: whether one comes from our own page, where it leads, and by which door it came."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from threadline.kernel.errors import Forbidden, ThreadlineError
from threadline.surfaces.console.frame import PAGE_HEADERS, render
from threadline.surfaces.http.answers.problem import headers_of, scheme_of, text_of


def redirect(to: str) -> Response:
    """Send a browser to a page after a form."""
    return RedirectResponse(to, 303, {"cache-control": "no-store"})


def is_secure(request: Request) -> bool:
    """Whether the browser came by HTTPS, to us or to a proxy before us. Whoever lies harms their own cookie."""
    return scheme_of(request) == "https"


def refuse_foreign(request: Request) -> None:
    """Raise `Forbidden` for a form that another site's page sends.

    Browsers say where a form comes from; only where they do not, by plain HTTP, the two hosts are compared, which are
    not the same where a proxy names another one.
    """
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is None:
        is_foreign = bool(origin) and urlsplit(origin or "").netloc != request.headers.get("host", "")
    else:
        is_foreign = site not in ("same-origin", "none")
    if is_foreign:
        raise Forbidden("this form was sent from another site")


def theme(request: Request) -> str:
    """The theme that somebody has chosen."""
    chosen = request.cookies.get("threadline_theme", "")
    return chosen if chosen in ("light", "dark") else "auto"


def refused(error: ThreadlineError, request: Request, back: str = "/") -> Response:
    """A page that says what went wrong, and leads back."""
    hint = "" if error.is_inside else error.hint
    heading = "Not found" if error.status == 404 else "Not done" if error.status < 500 else "Something went wrong"
    context = {"problem": text_of(error), "hint": hint, "status": error.status, "heading": heading, "back": back}
    page = render("refused.html", {**context, "theme": theme(request)})
    headers = {**PAGE_HEADERS, **headers_of(error)}
    return Response(page, error.status, headers=headers)
