"""The webhook sender on a real receiver: signature, answers, time, and where it does not go."""

from __future__ import annotations

import base64
import ipaddress
import json
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from typing import Any

import pytest
from msgspec.structs import replace

from tests.senders.receiver import OK, Answer, Call, Receiver, is_signed
from threadline.kernel.errors import InvalidSetting
from threadline.kernel.policy import Effect
from threadline.kernel.sender import EFFECT_DONE as DONE
from threadline.kernel.sender import EFFECT_PARKED as PARKED
from threadline.kernel.sender import EFFECT_RETRIED as RETRIED
from threadline.kernel.sender import Outcome
from threadline.kernel.time import SECOND
from threadline.kernel.webhook import standard_body
from threadline.outgoing import public_call
from threadline.outgoing.allowed_addresses import read_networks
from threadline.outgoing.public_call import HttpCaller
from threadline.senders.webhook import Target, WebhookSender, read_secret, signatures

NOW = 1_800_000_000 * SECOND
ID = "0123456789abcdef0123456789abcdef"
LOOPBACK = read_networks("127.0.0.0/8")
SECRETS = ["whsec_" + base64.b64encode(bytes([n]) * 24).decode() for n in (1, 2)]
DATA = {"rule": "risk", "version": 3, "at": "2026-03-01T12:00:00Z", "payload": {"b": 1, "a": "ä"}}


def sender(url: str, networks: Any = LOOPBACK, *, secrets: list[str] = [], **options: Any) -> WebhookSender:  # noqa: B006
    target = Target(url, tuple(read_secret(each, "test") for each in secrets), **options)
    return WebhookSender({"crm": target}, (), HttpCaller(networks, plain=True), lambda: NOW)


def send(sender: WebhookSender, **data: Any) -> Outcome:
    return sender.send(Effect(kind="webhook", key="k", data={**DATA, "destination": "crm", **data}), ID, "a" * 32)


def answering(*answers: Answer) -> Receiver:
    left = list(answers)
    return Receiver(lambda call: left.pop(0) if left else OK)


# --- what is sent -------------------------------------------------------------------------------


def test_a_call_is_signed_by_every_secret_and_says_what_the_rule_says() -> None:
    with Receiver() as receiver:
        outcome = send(sender(receiver.url("/hooks?tenant=7"), secrets=SECRETS))
        [call] = receiver.calls
    assert replace(outcome, exchange=None) == Outcome(type=DONE, properties={"destination": "crm", "status": 204})
    assert call.path == "/hooks?tenant=7"
    assert call.headers["content-type"] == "application/json"
    assert call.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert (call.headers["webhook-id"], call.headers["webhook-timestamp"]) == (ID, "1800000000")
    assert [is_signed(call, secret) for secret in SECRETS] == [True, True]
    assert not is_signed(call, "whsec_" + base64.b64encode(bytes(24)).decode())
    assert not is_signed(Call(call.path, call.headers, call.body + b" "), SECRETS[0])
    assert not is_signed(Call(call.path, {**call.headers, "webhook-timestamp": "1800000001"}, call.body), SECRETS[0])
    assert call.body.decode() == (
        '{"data":{"payload":{"a":"ä","b":1},"rule":"risk","version":3},'
        '"timestamp":"2026-03-01T12:00:00Z","type":"rule_matched"}'
    )


def test_the_signature_is_that_of_the_specification() -> None:
    # The example of the specification of Standard Webhooks and of its reference libraries.
    secret = read_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "test")
    body = b'{"test": 2432232314}'
    said = signatures([secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body)
    assert said == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_call_without_secrets_has_no_signature_and_an_address_in_a_rule_is_signed_by_the_setting() -> None:
    with Receiver() as receiver:
        assert send(sender(receiver.url())).type == DONE
        own = WebhookSender({}, (read_secret(SECRETS[0], "test"),), HttpCaller(LOOPBACK, plain=True), lambda: NOW)
        effect = Effect(kind="webhook", key="k", data={**DATA, "url": receiver.url("/x")})
        outcome = own.send(effect, ID, "a" * 32)
        first, second = receiver.calls
    assert "webhook-signature" not in first.headers
    assert is_signed(second, SECRETS[0])
    assert outcome.properties == {"host": "127.0.0.1", "status": 204}


def test_only_the_members_that_are_allowed_leave() -> None:
    with Receiver() as receiver:
        outcome = send(sender(receiver.url(), payload=("order", "total")), payload={"order": 1, "email": "a@b", "x": 2})
        [call] = receiver.calls
    assert json.loads(call.body)["data"]["payload"] == {"order": 1}
    assert outcome.properties["withheld"] == ["email", "x"]
    assert standard_body({"payload": "text"}, ())[1] == ["payload"]


@pytest.mark.parametrize(
    "text", ["", "secret", "whsec_", "whsec_!!!!", "whsec_" + "QUJD", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
)
def test_what_is_no_secret_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidSetting, match="env:X: a secret is whsec_") as error:
        read_secret(text, "env:X")
    assert not text or f"{text!r}" not in str(error.value)


# --- what answers mean ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "type", "destination"),
    [
        (200, DONE, "healthy"),
        (202, DONE, "healthy"),
        (204, DONE, "healthy"),
        (301, RETRIED, "healthy"),
        (400, RETRIED, "healthy"),
        (401, RETRIED, "healthy"),
        (404, RETRIED, "healthy"),
        (408, RETRIED, "failing"),
        (429, RETRIED, "failing"),
        (500, RETRIED, "failing"),
        (503, RETRIED, "failing"),
        (410, PARKED, "gone"),
    ],
)
def test_what_an_answer_means(status: int, type: str, destination: str) -> None:
    with answering((status, {}, b"told")) as receiver:
        outcome = send(sender(receiver.url()))
    assert (outcome.type, outcome.destination, outcome.properties["status"]) == (type, destination, status)
    assert (outcome.retry_after_seconds is None) == (type != RETRIED)
    assert bool(outcome.parked) == (type == PARKED)
    assert outcome.properties.get("answer") == ("told" if type == RETRIED else None)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("999999999", 3_600.0),
        ("-5", 0.0),
        ("soon", 0.0),
        ("", 0.0),
        ("1e9", 0.0),
        (formatdate(NOW / SECOND + 90, usegmt=True), 90.0),
        (formatdate(NOW / SECOND - 90, usegmt=True), 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 3_600.0),
    ],
)
def test_who_asks_to_wait_is_believed_within_a_bound(said: str, seconds: float) -> None:
    with answering((503, {"Retry-After": said}, b"")) as receiver:
        assert send(sender(receiver.url())).retry_after_seconds == seconds


def test_an_address_in_a_rule_that_is_gone_stops_nobody_else() -> None:
    with answering((410, {}, b"")) as receiver:
        outcome = WebhookSender({}, (), HttpCaller(LOOPBACK, plain=True), lambda: NOW).send(
            Effect(kind="webhook", key="k", data={"url": receiver.url()}), ID, "a" * 32
        )
    assert (outcome.type, outcome.destination) == (PARKED, "healthy")


def test_a_long_answer_is_read_to_a_bound() -> None:
    with answering((500, {}, b"x" * 3_000_000)) as receiver:
        outcome = send(sender(receiver.url()))
    assert outcome.properties["answer"] == "x" * 200


def test_a_destination_that_is_not_declared_is_parked() -> None:
    outcome = send(sender("http://127.0.0.1"), destination="crn")
    assert (outcome.type, outcome.parked) == (PARKED, "no destination 'crn' is declared")


# --- time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("trickle", [b"", b"HTTP/1.1 200 OK\r\nX: "], ids=["silent", "a byte at a time"])
def test_nobody_takes_more_time_than_there_is(trickle: bytes) -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        connection, _ = listening.accept()
        connection.sendall(trickle)
        while trickle and not over.wait(0.05):
            try:
                connection.sendall(b"x")
            except OSError:
                return
        over.wait(60)
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    began = time.monotonic()
    outcome = send(sender(f"http://127.0.0.1:{listening.getsockname()[1]}", timeout_seconds=0.4))
    over.set()
    listening.close()
    assert 0.3 < time.monotonic() - began < 30
    assert (outcome.type, outcome.destination) == (RETRIED, "failing")
    assert "Timeout" in outcome.properties["error"]


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"hello\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 " + b"x" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 500 no\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_answer_is_tried_again(said: bytes) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        connection.recv(65_536)
        connection.sendall(said)
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    outcome = send(sender(f"http://127.0.0.1:{listening.getsockname()[1]}"))
    listening.close()
    assert (outcome.type, outcome.destination) == (RETRIED, "failing")


@pytest.mark.parametrize(("interim", "type"), [((100, 102, 103), DONE), ((101,), RETRIED)])
def test_answers_that_go_before_the_one_that_counts_are_read_over(interim: tuple[int, ...], type: str) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listening.accept()
        connection.recv(65_536)
        before = "".join(f"HTTP/1.1 {status} wait\r\nLink: </style.css>\r\n\r\n" for status in interim)
        connection.sendall(f"{before}HTTP/1.1 204 No Content\r\n\r\n".encode())
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    assert send(sender(f"http://127.0.0.1:{listening.getsockname()[1]}")).type == type
    listening.close()


class Late(HttpCaller):
    """Takes its time to connect."""

    def _connected(self, *given: Any) -> socket.socket:
        made = super()._connected(*given)
        time.sleep(0.2)
        return made


class Shaking:
    """In the place of TLS: how long the handshake may take."""

    def wrap_socket(self, connection: socket.socket, **named: Any) -> socket.socket:
        self.seconds = connection.gettimeout() or 0.0
        raise OSError("enough")


def test_a_handshake_has_what_connecting_has_left() -> None:
    shaking = Shaking()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        caller = Late(LOOPBACK, tls=shaking)  # type: ignore[arg-type]
        with pytest.raises(public_call.Failed, match="enough"):
            caller.request("POST", f"https://127.0.0.1:{listening.getsockname()[1]}/", {}, b"", 5.0)
    assert shaking.seconds <= 4.8


def test_nobody_there_is_tried_again() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert send(sender(f"http://127.0.0.1:{port}")).destination == "failing"
    outcome = send(sender("http://no-such-host.invalid/"))
    assert (outcome.type, outcome.destination) == (RETRIED, "failing")


# --- where it does not go -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "127.1", "①②⑦.0.0.1"]
)
def test_this_machine_is_not_reached_however_it_is_written(host: str) -> None:
    with Receiver() as receiver:
        outcome = send(sender(receiver.url(host=host), networks=()))
        assert receiver.calls == []
    assert (outcome.type, outcome.destination) == (PARKED, "healthy")
    assert "not public" in outcome.parked


def test_a_name_that_leads_home_is_refused_also_if_it_changes_between_two_looks(monkeypatch: Any) -> None:
    looks: list[str] = []
    answers = ["93.184.216.34", "127.0.0.1"]

    def rebinding(host: str, port: int, **options: Any) -> Any:
        looks.append(host)
        address = answers[min(len(looks), len(answers)) - 1]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    connected: list[Any] = []

    class Watched(socket.socket):
        def connect(self, place: Any) -> None:
            connected.append(place)
            raise ConnectionRefusedError("the test lets nothing out")

    monkeypatch.setattr(public_call.socket, "getaddrinfo", rebinding)
    monkeypatch.setattr(public_call.socket, "socket", Watched)
    with Receiver() as receiver:
        first = send(sender(f"http://evil.example:{receiver.port}/", networks=()))
        second = send(sender(f"http://evil.example:{receiver.port}/", networks=()))
        assert receiver.calls == []
    assert looks == ["evil.example", "evil.example"], "one look for each call: what was judged is what is connected to"
    assert connected == [("93.184.216.34", receiver.port)]
    assert first.type == RETRIED
    assert (second.type, "127.0.0.1 is not public" in second.parked) == (PARKED, True)


def test_one_bad_address_among_good_ones_is_enough(monkeypatch: Any) -> None:
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 80)) for each in ("93.184.216.34", "10.0.0.1")]
    monkeypatch.setattr(public_call.socket, "getaddrinfo", lambda *args, **options: found)
    assert send(sender("http://both.example/", networks=())).type == PARKED


def test_redirects_are_not_followed() -> None:
    with Receiver() as inside, answering((302, {"Location": inside.url()}, b"")) as receiver:
        outcome = send(sender(receiver.url()))
        assert (inside.calls, len(receiver.calls)) == ([], 1)
    assert (outcome.type, outcome.properties["status"]) == (RETRIED, 302)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "ftp://example.com/",
        "https:///x",
        "https://a:b@example.com/",
        "https://[::1/",
        "https://example.com:99999/",
        "file:///etc/passwd",
        "None",
        "",
    ],
)
def test_addresses_that_are_not_called(url: str) -> None:
    assert (
        WebhookSender({"crm": Target(url)}, (), HttpCaller(), lambda: NOW)
        .send(Effect(kind="webhook", key="k", data={"destination": "crm"}), ID, "a" * 32)
        .parked
    )


def test_nothing_can_be_put_into_the_head_of_a_request() -> None:
    with Receiver() as receiver:
        send(sender(receiver.url("/a b\r\nX-Evil: 1?q=\r\nX: ü")))
        calls = receiver.calls
    assert all("x-evil" not in call.headers and "x" not in call.headers for call in calls)


def test_networks_are_read_or_refused() -> None:
    assert read_networks("") == ()
    assert read_networks("10.0.0.0/8, ::1") == (ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("::1/128"))
    assert all(any(ipaddress.ip_address(a) in n for n in read_networks("*")) for a in ("10.0.0.1", "::1"))
    with pytest.raises(InvalidSetting, match="webhook_private_addresses"):
        read_networks("10.0.0.1/8")


def test_tls_is_checked(tmp_path: Any) -> None:
    certificate, key = _certificate(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Receiver() as receiver:
        receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
        url = f"https://localhost:{receiver.port}/"
        trusting = HttpCaller(read_networks("127.0.0.0/8,::1"), tls=ssl.create_default_context(cafile=certificate))
        strict = HttpCaller(read_networks("127.0.0.0/8,::1"))
        effect = Effect(kind="webhook", key="k", data={**DATA, "destination": "crm"})
        for caller, host, type in (
            (trusting, url, DONE),
            (strict, url, RETRIED),
            (trusting, url.replace("localhost", "127.0.0.1"), RETRIED),
        ):
            outcome = WebhookSender({"crm": Target(host)}, (), caller, lambda: NOW).send(effect, ID, "a" * 32)
            assert outcome.type == type, outcome
        assert len(receiver.calls) == 1


def _certificate(folder: Any, name: str) -> tuple[str, str]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return str(certificate), str(secret)
