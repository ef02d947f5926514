"""Every setting with its type, default, unit and reason, and how one may be shown."""

from __future__ import annotations

import re
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec
from msgspec import Meta

from threadline.kernel.errors import InvalidSetting
from threadline.kernel.lists import comma_separated
from threadline.kernel.roles import ROLES, Role
from threadline.kernel.section import Section
from threadline.kernel.typed import prepared

PREFIX = "THREADLINE_"
EVERY_ROLE = "*"
SECRET = "secret"
"""The unit of settings that nothing may show."""

_LOGIN = re.compile(r"(?i)(?<=[?&])(?:password|sslpassword|passfile|oauth_client_secret|scram_\w+_key)=[^&]*&?")


def _about(unit: str, reason: str, **limits: Any) -> Meta:
    return Meta(description=reason, extra={"unit": unit}, **limits)


@prepared
class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings. Each can be set by `THREADLINE_<NAME>` or under ``settings:`` in `threadline.yaml`."""

    store: Annotated[
        str,
        _about("path", "The file that holds everything, on a local disk; or the URL of a shared store.", min_length=1),
    ] = "threadline.db"
    lake: Annotated[
        str,
        _about("path", "The lake: a folder, or `s3://bucket/prefix`. Empty: `threadline sql` reads the store alone."),
    ] = ""
    iceberg_catalog: Annotated[
        str,
        _about(
            SECRET,
            "Catalogue of the Iceberg tables: `glue`, a REST address, a SQLAlchemy URL, or the path of a SQLite file. "
            "Empty: `catalog.db` beside the tables.",
        ),
    ] = ""
    iceberg_warehouse: Annotated[
        str,
        _about("path", "Where Iceberg tables are created: a folder, or `s3://bucket/prefix`. Empty: below the lake."),
    ] = ""
    exports: Annotated[
        str,
        _about("path", "Where exports of many people are written: a folder, or `s3://bucket/prefix`. Empty: nowhere."),
    ] = ""
    definitions: Annotated[
        str,
        _about(
            "path", "A YAML file or a folder of them; empty means `threadline.yaml` beside the store, if it is there."
        ),
    ] = ""
    capabilities: Annotated[
        str,
        _about(
            "list",
            "`-name` switches a capability off, such as `-leaderboards, -streaks`; `package.module` adds one of your "
            "own. What ships and what is installed is on.",
        ),
    ] = ""
    workspace: Annotated[
        str,
        _about(
            "name",
            "The workspace of the command line and of Python, where no credential says another one.",
            min_length=1,
        ),
    ] = "default"
    write_keys: Annotated[
        str,
        _about(
            SECRET,
            "Write keys that need no store: `key` or `source=key`, separated by commas. They may only record.",
        ),
    ] = ""
    tokens: Annotated[
        str,
        _about(SECRET, "API tokens with every scope that need no store: `token` or `name=token`, separated by commas."),
    ] = ""
    host: Annotated[
        str, _about("address", "Only this machine by default; `0.0.0.0` opens the server to the network.")
    ] = "127.0.0.1"
    port: Annotated[
        int, _about("port", "Where the server listens; 0 takes a free port and prints it.", ge=0, le=65_535)
    ] = 8787
    public_url: Annotated[
        str,
        _about(
            "URL",
            "Where the world reaches this server, such as https://mail.example.com: links in mails begin with it. "
            "Empty: the server's own address if only this machine reaches it, else none.",
        ),
    ] = ""
    forwarded_allow_ips: Annotated[
        str,
        _about("list", "Proxies whose X-Forwarded-For is believed when a rate limit counts by address; `*` is all."),
    ] = "127.0.0.1"
    jwt_secret: Annotated[
        str,
        _about(SECRET, "Checks users' web tokens of algorithm HS256; at least 32 bytes. Empty: none are taken."),
    ] = ""
    jwt_keys: Annotated[
        str,
        _about(
            "address",
            "Checks users' web tokens of RS256 and ES256: the http address or the file of the issuer's JWKS.",
        ),
    ] = ""
    jwt_issuer: Annotated[
        str, _about("text", "What a token must name as its issuer (`iss`); empty: whoever holds a key may issue.")
    ] = ""
    jwt_audience: Annotated[
        str, _about("text", "What a token must name as its audience (`aud`); set it where an issuer serves others too.")
    ] = ""
    jwt_user_claim: Annotated[
        str, _about("name", "The claim that holds the user's id, as events have it in `user_id`.", min_length=1)
    ] = "sub"
    jwt_leeway_seconds: Annotated[
        int, _about("seconds", "How far the issuer's clock may be off when a token's times are checked.", ge=0, le=600)
    ] = 0
    jwt_keys_cache_seconds: Annotated[
        float,
        _about("seconds", "How long the issuer's keys are kept; a key that is not known is looked up at once.", ge=1),
    ] = 300.0
    graphql_introspection: Annotated[
        bool, _about("switch", "Whether GraphQL answers questions about its schema, as tools for developers ask them.")
    ] = True
    anonymous_applications: Annotated[
        str,
        _about("list", "Application ids that may send anonymous actions; `*` is every one, empty is none."),
    ] = "*"
    anonymous_actions_per_minute: Annotated[
        int,
        _about("actions", "New anonymous actions of one network address in any minute; 0 is no limit.", ge=0),
    ] = 5
    commit_events_max: Annotated[
        int,
        _about(
            "events",
            "Events in one group commit. More make one commit longer and reads beside it slower.",
            ge=1,
            le=1_000,
        ),
    ] = 300
    queue_events_max: Annotated[
        int,
        _about(
            "events",
            "Events that may wait for a commit; a request that would exceed it is told 503 and comes again.",
            ge=1,
        ),
    ] = 20_000
    read_threads: Annotated[
        int,
        _about(
            "threads", "Short reads, pages and writes that run at once, each. More share the same core.", ge=1, le=64
        ),
    ] = 4
    switch_interval_seconds: Annotated[
        float,
        _about(
            "seconds", "How soon the interpreter lets the writer go on beside the server's own thread.", gt=0, le=0.1
        ),
    ] = 0.0005
    shutdown_seconds: Annotated[
        int, _about("seconds", "How long requests in flight may take to end once the server is told to stop.", ge=1)
    ] = 10
    drain_seconds: Annotated[
        float,
        _about(
            "seconds",
            "How long the server goes on after SIGTERM with `/readyz` at 503, before it takes no more connections. "
            "Longer than the balancer in front needs to notice. A second SIGTERM and Ctrl-C skip it.",
            ge=0,
            le=3_600,
        ),
    ] = 3.0
    keep_alive_seconds: Annotated[
        int,
        _about(
            "seconds",
            "How long an idle connection stays open; longer than a client's usual pause saves handshakes.",
            ge=1,
        ),
    ] = 30
    clients_max: Annotated[
        int,
        _about(
            "connections",
            "Connections of clients, fewer where the system allows fewer open files. Further ones are told 503, but "
            "for `/livez`, `/readyz` and `/metrics`.",
            ge=1,
        ),
    ] = 10_000
    request_memory_bytes: Annotated[
        int,
        _about(
            "bytes",
            "Requests in memory, from their first byte to their answer; a quarter of it for those that have shown no "
            "credential. Beyond it the largest that is still coming is told 503.",
            ge=16_777_216,
        ),
    ] = 64_000_000
    answer_memory_bytes: Annotated[
        int,
        _about(
            "bytes",
            "Large answers in memory until their clients have taken them. Beyond it clients that take none of theirs "
            "for five seconds are cut off, and others told 503.",
            ge=16_777_216,
        ),
    ] = 64_000_000
    streams_max: Annotated[
        int,
        _about(
            "streams",
            "Answers that are streamed at once: events of a job, which looks twice a second, and archives.",
            ge=0,
        ),
    ] = 200
    source_events_per_second: Annotated[
        float,
        _about("events/s", "New events that one write key may send; 0 is no limit. Duplicates cost nothing.", ge=0),
    ] = 0.0
    source_burst_events: Annotated[
        int, _about("events", "How many new events of a write key may come at once before its limit is felt.", ge=1)
    ] = 2_500
    address_events_per_second: Annotated[
        float,
        _about(
            "events/s",
            "New events that one network address may send, IPv6 by its /64; 0 is no limit. Duplicates cost nothing.",
            ge=0,
        ),
    ] = 0.0
    address_burst_events: Annotated[
        int, _about("events", "How many new events of an address may come at once before its limit is felt.", ge=1)
    ] = 2_500
    person_events_per_second: Annotated[
        float,
        _about(
            "events/s",
            "New events that may come of one person, by any write key or web token; 0 is no limit. Duplicates cost "
            "nothing. Anybody can send with a key that stands in a page, and must not make others wait.",
            ge=0,
        ),
    ] = 100.0
    person_burst_events: Annotated[
        int, _about("events", "How many new events of a person may come at once before their limit is felt.", ge=1)
    ] = 1_000
    person_limit_tokens: Annotated[
        bool,
        _about("switch", "Whether a person's events that come with an API token, such as history, count as well."),
    ] = False
    credential_cache_seconds: Annotated[
        float, _about("seconds", "How long a key that was revoked by another process may still be taken.", ge=0, le=600)
    ] = 5.0
    second_factor: Annotated[
        str,
        _about(
            "list",
            "Roles whose accounts sign in to the console with a second factor, such as `admin, operator`; `*` is every "
            "one. Empty: whoever turns it on.",
        ),
    ] = ""
    oidc_issuer: Annotated[
        str,
        _about(
            "URL",
            "The OpenID Connect provider that signs people in to the console, as it names itself (`iss`): "
            "https://id.example.com. Empty: there is none.",
        ),
    ] = ""
    oidc_client_id: Annotated[str, _about("text", "What the provider knows this server as.")] = ""
    oidc_client_secret: Annotated[
        str, _about(SECRET, "What this server shows the provider; empty: it is a public client, with PKCE alone.")
    ] = ""
    oidc_roles: Annotated[
        str,
        _about(
            "list",
            "Group of the provider = role here, separated by commas: `staff=viewer, crm-admins=admin`; `*` is "
            "everybody whom it signs in. Of several roles the last counts, in the order viewer, support, marketer, "
            "operator, admin. Who has none is refused.",
        ),
    ] = ""
    oidc_scopes: Annotated[
        str, _about("list", "What is asked of the provider; some give groups only for a scope of their own.")
    ] = "openid email profile"
    oidc_groups_claim: Annotated[str, _about("name", "The claim that lists somebody's groups.", min_length=1)] = (
        "groups"
    )
    oidc_name_claim: Annotated[
        str, _about("name", "The claim that names somebody's account here; without blanks.", min_length=1)
    ] = "email"
    oidc_leeway_seconds: Annotated[int, _about("seconds", "How far the provider's clock may be off.", ge=0, le=600)] = (
        60
    )
    access_log: Annotated[
        bool,
        _about("switch", "One JSON line on stderr for each request, with its route and never a path, key or token."),
    ] = True
    tracing: Annotated[
        bool,
        _about(
            "switch",
            "OpenTelemetry traces, by OTLP over HTTP to `OTEL_EXPORTER_OTLP_ENDPOINT`; needs `threadline[otel]`.",
        ),
    ] = False
    page_cache_bytes: Annotated[
        int,
        _about(
            "bytes",
            "Memory in which the store keeps pages of its file; more helps when the file is large.",
            ge=1_000_000,
        ),
    ] = 64_000_000
    people_cache_bytes: Annotated[
        int,
        _about(
            "bytes",
            "Memory in which who is written about stays between commits; more helps where many people are active. 0: a "
            "48th of the memory of the machine or container, from 48 to 120 MB.",
            ge=0,
        ),
    ] = 0
    wal_pages_max: Annotated[
        int,
        _about(
            "pages", "Pages of the write-ahead log at which they are moved into the file, beside the commits.", ge=100
        ),
    ] = 16_000
    busy_timeout_seconds: Annotated[
        float,
        _about("seconds", "How long the store waits for another connection before it says that it is busy.", ge=0),
    ] = 5.0
    scrub_days: Annotated[
        float,
        _about(
            "days",
            "How long the server takes to read the whole store once and check every event for damage, over and over; 0 "
            "leaves it to `threadline verify`.",
            ge=0,
        ),
    ] = 7.0
    search_index: Annotated[
        str,
        _about(
            "path",
            "The file of the search index, on a local disk. Empty: beside an embedded store; a shared store has none.",
        ),
    ] = ""
    analytics_dir: Annotated[
        str,
        _about(
            "path",
            "The folder, on a local disk, of the columns that analytics and SQL read where no lake is set. Empty: "
            "beside an embedded store; a shared store has none.",
        ),
    ] = ""
    opensearch: Annotated[
        str,
        _about(
            SECRET,
            "The address of an OpenSearch cluster that has the search index, with user and password if it asks for "
            "them: https://user:password@search.example:9200. Empty: the index is embedded.",
        ),
    ] = ""
    opensearch_prefix: Annotated[
        str,
        _about("name", "What the names of all indexes in OpenSearch begin with.", pattern="^[a-z][a-z0-9_]{0,30}$"),
    ] = "threadline"
    leaderboard_refresh_seconds: Annotated[
        float,
        _about(
            "seconds",
            "How old the counts behind ranks may be where other processes write to the same store; each refresh reads "
            "the board once. Where one process writes they are never old.",
            ge=1,
        ),
    ] = 60.0
    rules_refresh_seconds: Annotated[
        float,
        _about(
            "seconds",
            "How long a process goes by the rules it has read where others write to the same store; 0 looks before "
            "every group of events, which is one read more. As often, and not more than once a second, a server looks "
            "for definitions that were made by hand. Where one process writes, changes count at once.",
            ge=0,
            le=60,
        ),
    ] = 1.0
    activation_what_if: Annotated[
        bool,
        _about(
            "switch",
            "A version of a rule is activated only once a what-if of it was saved, against the version that is active "
            "and without errors.",
        ),
    ] = False
    activation_changed_max: Annotated[
        float,
        _about(
            "share",
            "With `activation_what_if`: the largest share of its answers that may have changed, 0 to 1.",
            ge=0,
            le=1,
        ),
    ] = 1.0
    webhook_private_addresses: Annotated[
        str,
        _about(
            "list",
            "Networks that webhooks may go to although they are not public, such as `10.1.0.0/16`; `*` is every one. "
            "Whoever may write rules could otherwise reach what stands behind the firewall.",
        ),
    ] = ""
    webhook_http: Annotated[
        bool,
        _about("switch", "Whether webhooks may go to addresses without TLS, which others can read on their way."),
    ] = False
    webhook_secrets: Annotated[
        str,
        _about(
            SECRET,
            "Sign webhooks to addresses that rules name themselves: `whsec_…`, separated by commas, the newest first.",
        ),
    ] = ""
    schedule_target: Annotated[
        str,
        _about("ARN", "On AWS Lambda: the function that EventBridge Scheduler calls when something is due."),
    ] = ""
    schedule_role: Annotated[
        str,
        _about("ARN", "The role under which EventBridge Scheduler calls it."),
    ] = ""
    schedule_group: Annotated[
        str,
        _about("name", "The group of schedules that Threadline makes.", min_length=1),
    ] = "default"
    ingestion_queue: Annotated[
        str, _about("URL", "The queue of Amazon SQS whose messages `threadline work` records; empty: none.")
    ] = ""
    payload_buckets: Annotated[
        str,
        _about(
            "list",
            "Buckets of S3 from which the payloads of such messages are read, where those only say where they are.",
        ),
    ] = ""
    events_topic: Annotated[
        str, _about("ARN", "The topic of Amazon SNS that every committed event is published to; empty: none.")
    ] = ""
    memory_queue: Annotated[
        str, _about("URL", "The queue of SQS that is sent every event that may change what is remembered of a person.")
    ] = ""
    feature_queue: Annotated[
        str, _about("URL", "The queue of SQS that is sent every event that may change a person's features.")
    ] = ""
    connections_max: Annotated[
        int,
        _about("connections", "Connections of one process to a PostgreSQL server; each costs the server memory.", ge=1),
    ] = 8
    retry_seconds: Annotated[
        float,
        _about("seconds", "How long a server that cannot be reached is tried again before callers are told 503.", ge=0),
    ] = 10.0
    cache: Annotated[
        str,
        _about(
            "URL",
            "A Redis or Valkey that all processes share, for reads and rate limits; empty: none. It holds nothing that "
            "could not be lost.",
        ),
    ] = ""
    cache_tables: Annotated[
        str,
        _about("list", "What the cache keeps, and for how many seconds at most: `table=seconds`, separated by commas."),
    ] = "person=300,thread=86400,board=60"
    cache_timeout_seconds: Annotated[
        float,
        _about("seconds", "How long the cache may take to answer; then the store is asked.", gt=0, le=10),
    ] = 0.1
    cache_lease_seconds: Annotated[
        float,
        _about(
            "seconds",
            "How long a process believes that the cache is in use. The first write after the cache is lost waits a "
            "little longer than this.",
            gt=0,
            le=60,
        ),
    ] = 1.0
    cache_retry_seconds: Annotated[
        float, _about("seconds", "How long a cache that failed is left alone before it is tried again.", gt=0, le=3_600)
    ] = 5.0


NOT_IN_FILES = ("store", "definitions")
"""They say where the files are, so they cannot stand in one."""


def _schema() -> dict[str, Any]:
    declared = msgspec.json.schema(Settings)["$defs"]["Settings"]["properties"]
    properties = {
        name: {key: value for key, value in schema.items() if key != "title"}
        for name, schema in declared.items()
        if name not in NOT_IN_FILES
    }
    return {
        "type": "object",
        "description": "Settings by name; the environment beats what stands here.",
        "properties": properties,
        "additionalProperties": False,
    }


SETTINGS_SECTION = Section("settings", _schema())


class Described(NamedTuple):
    """A setting as documentation and `threadline settings` show it."""

    name: str
    type: str
    default: Any
    unit: str
    reason: str

    @property
    def is_secret(self) -> bool:
        """Whether its value may be shown nowhere."""
        return self.unit == SECRET

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return PREFIX + self.name.upper()


def describe() -> list[Described]:
    """Every setting, in the order in which they are declared."""
    hints = get_type_hints(Settings, include_extras=True)
    defaults = Settings()
    described = []
    for name in Settings.__struct_fields__:
        meta: Meta = hints[name].__metadata__[0]
        unit = (meta.extra or {})["unit"]
        described.append(
            Described(name, hints[name].__origin__.__name__, getattr(defaults, name), unit, meta.description or "")
        )
    return described


def without_secret(url: str) -> str:
    """A URL as it may be shown: whoever logs in by it, and how, is left out. What is no URL stays as it is.

    A password may hold any sign, written as it should be or not: what stands before the last `@` goes, and if that is
    more than it had to be, no harm is done.
    """
    scheme, there, rest = url.partition("://")
    if not there:
        return url
    return f"{scheme}://{_LOGIN.sub('', rest).rpartition('@')[2].rstrip('?&')}"


def second_factor_roles(settings: Settings) -> frozenset[Role]:
    """The roles whose accounts need a second factor. Raises `InvalidSetting` for what is no role."""
    names = comma_separated(settings.second_factor)
    for name in names:
        if name not in (*ROLES, EVERY_ROLE):
            raise InvalidSetting(f"second_factor: {name!r} is not a role; choose from {', '.join(ROLES)}, or write *")
    return frozenset(role for role in ROLES if role in names or EVERY_ROLE in names)


def cache_lifetimes(settings: Settings) -> dict[str, float]:
    """Which tables the cache keeps, and for how many seconds."""
    lifetimes: dict[str, float] = {}
    for part in comma_separated(settings.cache_tables):
        table, _, seconds = part.partition("=")
        try:
            lifetimes[table.strip()] = float(seconds)
        except ValueError:
            lifetimes[table.strip()] = 0.0
        if not 0.001 <= lifetimes[table.strip()] <= 31_536_000:
            raise InvalidSetting(f"cache_tables: {part!r} is not `table=seconds`, such as person=300")
    return lifetimes
