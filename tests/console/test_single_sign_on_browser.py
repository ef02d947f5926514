"""Signing in through a real provider, in a real browser: a group gives a role, and without one nobody gets in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chromium import launched
from tests.console.browser import SCHEMES, Server, Watched
from tests.servers.oidc import CLIENT, SECRET, provider
from tests.servers.ports import free_port
from tests.surfaces.test_http_server import Process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder: Path = tmp_path_factory.mktemp("sso")
    port = free_port()
    environment = {
        "THREADLINE_ACCESS_LOG": "false",
        "THREADLINE_OIDC_ISSUER": f"http://127.0.0.1:{port}",
        "THREADLINE_OIDC_CLIENT_ID": CLIENT,
        "THREADLINE_OIDC_CLIENT_SECRET": SECRET,
        "THREADLINE_OIDC_ROLES": "staff=viewer, crm-admins=admin",
    }
    # Neither needs the other to start.
    process = Process(str(folder / "events.db"), environment)
    try:
        with provider(port, f"{process.url}/sign-in/provider/return"):
            yield Server(process.url, {})
    finally:
        process.stop()


def through_provider(watched: Watched, name: str) -> None:
    """Sign in at the provider, and agree to what is asked."""
    page = watched.page
    page.goto(watched.server.url + "/sign-in?next=/account")
    page.click("text=Single sign-on")
    page.fill("[name=login]", name)
    page.fill("[name=password]", "any")
    page.click("button[type=submit]")
    page.click("button[type=submit]")
    page.wait_for_url(re.compile(re.escape(watched.server.url)))


@pytest.mark.parametrize(("scheme", "width"), zip(SCHEMES, (1_440, 390), strict=True))
def test_a_group_of_the_provider_is_a_role_here_and_without_one_nobody_gets_in(
    server: Server, scheme: str, width: int
) -> None:
    with launched() as browser:
        for name, role in (("ada", "admin"), ("vera", "viewer")):
            with Watched(browser, server, scheme=scheme, width=width) as watched:
                through_provider(watched, name)
                assert watched.page.url == server.url + "/account"
                shown = watched.page.inner_text("main")
                assert f"{name}@example.com" in shown
                assert role in shown
        with Watched(browser, server, scheme=scheme, width=width) as watched:
            through_provider(watched, "eve")
            assert "none of your groups may use this console" in watched.page.inner_text("[role=alert]")
            watched.page.goto(server.url + "/account")
            assert "/sign-in" in watched.page.url


def test_a_link_that_a_provider_sent_one_browser_to_opens_nothing_in_another(server: Server) -> None:
    with launched() as browser, Watched(browser, server) as watched:
        back: list[str] = []
        watched.page.on(
            "request", lambda request: back.append(request.url) if "/provider/return" in request.url else None
        )
        through_provider(watched, "ada")
        assert back
        watched.context.clear_cookies()
        watched.page.goto(back[0])
        assert "did not begin in this browser" in watched.page.inner_text("[role=alert]")
