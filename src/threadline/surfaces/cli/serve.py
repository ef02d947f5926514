"""``threadline serve``: the HTTP server on one store."""

from __future__ import annotations

import logging
import os
from contextlib import closing
from typing import Any

import click
import msgspec

from threadline.capabilities.reach.inbox.operations import has_inbox
from threadline.capabilities.reach.inbox.page import PATH as INBOX_PATH
from threadline.engine.delivery.dispatcher import Dispatcher
from threadline.engine.engine import Engine
from threadline.settings import Settings, without_secret
from threadline.settings.parts import refuse_lacking
from threadline.surfaces.cli.session import Session, store_option, workspace_option
from threadline.surfaces.definition_checks import warnings
from threadline.surfaces.log_lines import log_lines

log = logging.getLogger("threadline.definitions")


@click.command()
@store_option
@workspace_option
@click.option("--host", help="Where to listen; default: THREADLINE_HOST or 127.0.0.1.")
@click.option("--port", type=click.IntRange(0, 65_535), help="Default: THREADLINE_PORT or 8787; 0 takes a free one.")
@click.pass_obj
def serve(session: Session, host: str | None, port: int | None) -> None:
    """Run the HTTP server until it is stopped.

    If the store has no credentials yet, the server makes a write key and an admin token, and prints both once. When it
    is ready, it prints one line of JSON with its address. On SIGTERM, Ctrl-C or the end of its terminal it completes
    the requests that it has begun and closes the store. On SIGHUP it reloads the definitions; if there is a mistake, it
    logs all of them and keeps the old definitions.
    """
    from threadline.surfaces.http.server.server import bound, own_address
    from threadline.surfaces.http.server.server import serve as run

    log_lines()
    session.given.update(_without_none(host=host, port=port))
    settings, composition = session.settings(), session.composition
    refuse_lacking(settings)
    # What can fail is done before keys are made: they are told once, and by then they must be of use.
    with bound(settings.host, settings.port) as listening, closing(composition.open_served(settings)) as engine:

        def ready(address: str) -> None:
            if secrets := first_credentials(engine, settings):
                click.echo(welcome(address, *secrets))
                if has_inbox(engine):
                    click.echo(f"  Mail that is sent is shown at {address}{INBOX_PATH}#token={secrets[1]}\n")
            line = {"ready": True, "url": address, "store": without_secret(settings.store), "pid": os.getpid()}
            click.echo(msgspec.json.encode(line))

        def reopen(old: Engine) -> tuple[Engine, Dispatcher]:
            log_changed_settings(settings, session.settings())
            fresh = composition.reopen(old, settings)
            log_warnings(fresh)
            return fresh, composition.open_dispatcher(fresh, settings)

        def check(current: Engine, by_hand: str) -> str:
            return composition.would_be(current, settings, by_hand)

        engine.public_address.use_local(own_address(listening))
        log_warnings(engine)
        dispatcher, limits = composition.open_dispatcher(engine, settings), composition.open_limits(settings)
        run(engine, settings, listening, ready, dispatcher, limits, reopen, check)


def log_warnings(engine: Engine) -> None:
    """Log what is in the definitions and hardly meant, and what people's states are still behind."""
    for warning in warnings(engine.catalogue, engine.log):
        log.warning("%s", warning)
    if stale := engine.maintenance.stale():
        log.warning("older than the definitions: %s; run `threadline apply`", ", ".join(stale))


def log_changed_settings(before: Settings, after: Settings) -> None:
    """Log the names of settings that have changed: a server goes by those that it was started with."""
    changed = [name for name in Settings.__struct_fields__ if getattr(before, name) != getattr(after, name)]
    if changed:
        log.warning("settings have changed and count from the next start on: %s", ", ".join(changed))


def first_credentials(engine: Engine, settings: Settings) -> tuple[str, str] | None:
    """(write key, admin token) for a store that has no credentials and settings that give none, else None."""
    credentials = engine.credentials
    if credentials.has_any():
        return None
    _, write_key = credentials.create(settings.workspace, "write_key", "default")
    _, token = credentials.create(settings.workspace, "token", "admin", ["admin"])
    return write_key, token


def welcome(address: str, write_key: str, token: str) -> str:
    """What the first start of a new store prints."""
    return f"""
  This store is new. These are its keys; they are shown this once.

    write key    {write_key}
    admin token  {token}

  Record something, then read all that is known of that person:

    curl {address}/v1/track -u {write_key}: \\
      -d '{{"userId":"42","event":"Order Completed","properties":{{"total":29.33,"currency":"EUR"}}}}'

    curl {address}/v1/people/user_id:42 -H 'Authorization: Bearer {token}'

  The console, with people, journeys and numbers:  {address}  (sign in with the admin token)
  All of the API:  {address}/docs
"""


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
