"""The logins of webhooks: the headers that authorise a call, and the access tokens of OAuth."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import threading
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode

import msgspec

from threadline.kernel.time import SECOND, Clock
from threadline.outgoing.public_call import Failed, HttpCaller

AUTHORIZATION = "Authorization"
TOKEN_SECONDS = 300
"""How long a token counts whose answer does not say it."""
TOKEN_SECONDS_MAX = 86_400
SPARE_SECONDS = 30
"""A token is fetched anew so long before it ends: a call with it takes a while."""
_ANSWER_BYTES_MAX = 20_000
_TOKEN = re.compile(r"[\x21-\x7e]{1,8000}")


class NoToken(Exception):
    """No access token could be fetched. It says nothing of what the answer was made of."""


class OAuth(NamedTuple):
    """Where access tokens come from, with the client's secret."""

    token_url: str
    client_id: str
    client_secret: str
    scope: str
    audience: str
    credentials: str

    def request(self) -> tuple[dict[str, str], bytes]:
        """Headers and body of the request for a token (RFC 6749, 4.4.2)."""
        form = {"grant_type": "client_credentials"}
        form |= {name: value for name, value in (("scope", self.scope), ("audience", self.audience)) if value}
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        if self.credentials == "body":
            form |= {"client_id": self.client_id, "client_secret": self.client_secret}
        else:  # each is encoded as in a form before it is joined (RFC 6749, 2.3.1)
            headers[AUTHORIZATION] = basic(quote(self.client_id, safe=""), quote(self.client_secret, safe=""))
        return headers, urlencode(form).encode()

    @property
    def secrets(self) -> tuple[str, ...]:
        """What nobody may see, in each of its forms."""
        return (self.client_secret, *_encoded(quote(self.client_id, safe=""), quote(self.client_secret, safe="")))


class Hmac(NamedTuple):
    """A signature of the body, with its key."""

    header: str
    key: str
    algorithm: str
    encoding: str
    prefix: str

    def value(self, body: bytes) -> str:
        """The header's value."""
        digest = hmac.new(self.key.encode(), body, getattr(hashlib, self.algorithm)).digest()
        return self.prefix + (digest.hex() if self.encoding == "hex" else base64.b64encode(digest).decode())


class _Token(NamedTuple):
    text: str
    until: int


class Login(Protocol):
    """What is declared of a login."""

    basic: Any
    bearer: str
    oauth: Any
    hmac: Any


class Tokens:
    """The access token of one destination. Thread-safe: several calls that need one fetch it once."""

    def __init__(self, oauth: OAuth, caller: HttpCaller, clock: Clock) -> None:
        self._oauth = oauth
        self._caller = caller
        self._clock = clock
        self._lock = threading.Lock()
        self._token: _Token | None = None

    def token(self, timeout_seconds: float, refused: str = "") -> str:
        """A token that counts; fetched where there is none, or where it is the one that was ``refused``.

        Raises `NoToken`, and `Refused` for an address that is not called.
        """
        with self._lock:
            token = self._token
            if token is None or token.text == refused or self._clock() >= token.until:
                self._token = None
                self._token = token = self._fetched(timeout_seconds)
            return token.text

    @property
    def known(self) -> str:
        """The token that is kept; empty: none."""
        token = self._token
        return "" if token is None else token.text

    def _fetched(self, timeout_seconds: float) -> _Token:
        headers, body = self._oauth.request()
        try:
            answer = self._caller.request(
                "POST", self._oauth.token_url, headers, body, timeout_seconds, _ANSWER_BYTES_MAX
            )
        except Failed as error:
            raise NoToken(f"no access token was fetched: {error}") from None
        if answer.status != 200:
            raise NoToken(f"no access token was fetched: its address answered {answer.status}")
        try:
            content = msgspec.json.decode(answer.body)
        except msgspec.DecodeError:
            content = None
        text = content.get("access_token") if isinstance(content, dict) else None
        if not isinstance(text, str) or not _TOKEN.fullmatch(text):
            raise NoToken("no access token was fetched: the answer of its address has none")
        seconds = content.get("expires_in")
        try:
            seconds = int(seconds) if seconds is not None else TOKEN_SECONDS
        except (TypeError, ValueError):
            seconds = TOKEN_SECONDS
        seconds = max(0, min(seconds, TOKEN_SECONDS_MAX) - SPARE_SECONDS)
        return _Token(text, self._clock() + seconds * SECOND)


def basic(user: str, password: str) -> str:
    """The header's value for a user and a password."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _encoded(user: str, password: str) -> Iterable[str]:
    yield password
    yield basic(user, password).partition(" ")[2]


class Authorised:
    """The login of one destination. Thread-safe."""

    def __init__(
        self, fixed: str = "", hmac: Hmac | None = None, tokens: Tokens | None = None, secrets: tuple[str, ...] = ()
    ) -> None:
        self._fixed = fixed
        self._hmac = hmac
        self._secrets = secrets
        self.tokens = tokens
        self.header = AUTHORIZATION if hmac is None else hmac.header

    def value(self, body: bytes, timeout_seconds: float, refused: str = "") -> str:
        """The value of its header. Raises `NoToken` and `Refused`."""
        if self._hmac is not None:
            return self._hmac.value(body)
        return f"Bearer {self.tokens.token(timeout_seconds, refused)}" if self.tokens is not None else self._fixed

    @property
    def secrets(self) -> tuple[str, ...]:
        """What nobody may see."""
        known = self.tokens.known if self.tokens is not None else ""
        return (*self._secrets, known) if known else self._secrets


def authorised(login: Login, secrets: dict[str, str], caller: HttpCaller, clock: Clock) -> Authorised:
    """A declared login with its secrets, which are there by the names of their variables."""
    if login.basic is not None:
        user, password = login.basic.user, secrets[login.basic.password]
        return Authorised(basic(user, password), secrets=tuple(_encoded(user, password)))
    if login.bearer:
        return Authorised(f"Bearer {secrets[login.bearer]}", secrets=(secrets[login.bearer],))
    if login.hmac is not None:
        it = login.hmac
        key = secrets[it.secret]
        return Authorised(hmac=Hmac(it.header, key, it.algorithm, it.encoding, it.prefix), secrets=(key,))
    it = login.oauth
    oauth = OAuth(it.token_url, it.client_id, secrets[it.client_secret], it.scope, it.audience, it.credentials)
    return Authorised(tokens=Tokens(oauth, caller, clock), secrets=oauth.secrets)
