"""DNS is asked for texts: by datagram, by stream where the answer is long, and says when nobody answers."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest
from hypothesis import given
from hypothesis import strategies as st

from threadline.kernel.errors import Unavailable
from threadline.outgoing import name_server
from threadline.outgoing.dns import NoAnswer, Truncated, question, texts
from threadline.outgoing.name_server import texts_of

RECORDS = {
    "shop.example.": ['"v=spf1 include:relay.example -all"', '"other"'],
    "long.example.": [f'"{n}{"x" * 200}" "{"y" * 200}"' for n in range(9)],
}


def _answer(packet: bytes, *, is_datagram: bool) -> bytes:
    asked = dns.message.from_wire(packet)
    made = dns.message.make_response(asked)
    name = asked.question[0].name
    if (records := RECORDS.get(name.to_text())) is None:
        made.set_rcode(dns.rcode.NXDOMAIN)
    else:
        made.answer.append(dns.rrset.from_text(name, 60, "IN", "CNAME", name.to_text()))
        made.answer.append(dns.rrset.from_text_list(name, 60, "IN", "TXT", records))
    if is_datagram and len(made.to_wire()) > 512:
        made.answer.clear()
        made.flags |= dns.flags.TC
    return made.to_wire()


@contextmanager
def _server(answer: Callable[..., bytes] = _answer) -> Iterator[tuple[str, int]]:
    """A name server on this machine, by datagram and stream."""
    with socket.socket(type=socket.SOCK_DGRAM) as datagram, socket.socket() as stream:
        datagram.bind(("127.0.0.1", 0))
        stream.bind(datagram.getsockname())
        stream.listen()

        def by_datagram() -> None:
            while True:
                try:
                    packet, asker = datagram.recvfrom(4_096)
                except OSError:
                    return
                if not packet:
                    return
                datagram.sendto(answer(packet, is_datagram=True), asker)

        def by_stream() -> None:
            while True:
                try:
                    connection = stream.accept()[0]
                except OSError:
                    return
                with connection:
                    head = connection.recv(2)
                    if not head:
                        return
                    made = answer(connection.recv(struct.unpack("!H", head)[0]), is_datagram=False)
                    connection.sendall(struct.pack("!H", len(made)) + made)

        threads = [threading.Thread(target=each, daemon=True) for each in (by_datagram, by_stream)]
        for thread in threads:
            thread.start()
        yield datagram.getsockname()
        with socket.socket(type=socket.SOCK_DGRAM) as end:
            end.sendto(b"", datagram.getsockname())
        socket.create_connection(stream.getsockname()).close()
        for thread in threads:
            thread.join(5)


def test_texts_of_a_name_come_whole_and_a_name_that_is_not_there_has_none() -> None:
    with _server() as server:
        assert texts_of("shop.example", [server]) == ["other", "v=spf1 include:relay.example -all"]
        assert texts_of("long.example", [server]) == [f"{n}{'x' * 200}{'y' * 200}" for n in range(9)]
        assert texts_of("_dmarc.nowhere.example", [server]) == []
        assert texts_of("no name." + "x" * 70, [server]) == []


def test_a_server_that_fails_is_passed_over_and_without_an_answer_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_server, "TIMEOUT_SECONDS", 0.2)

    def refused(packet: bytes, *, is_datagram: bool) -> bytes:
        made = dns.message.make_response(dns.message.from_wire(packet))
        made.set_rcode(dns.rcode.SERVFAIL)
        return made.to_wire()

    with socket.socket(type=socket.SOCK_DGRAM) as silent, _server() as server, _server(refused) as broken:
        silent.bind(("127.0.0.1", 0))
        assert texts_of("shop.example", [silent.getsockname(), broken, server])[0] == "other"
        with pytest.raises(Unavailable, match="DNS cannot be asked from here"):
            texts_of("shop.example", [silent.getsockname(), broken])
    with pytest.raises(Unavailable, match="no name server"):
        texts_of("shop.example", [])


@given(st.binary(max_size=80))
def test_whatever_comes_as_an_answer_is_texts_or_no_answer(content: bytes) -> None:
    for message in (content, b"\0\1\x81\x80\0\1\0\2\0\0\0\0" + content):
        with suppress(NoAnswer, Truncated):
            assert all(isinstance(text, str) for text in texts(message, 1))


@given(st.from_regex(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63}){0,2}", fullmatch=True).filter(lambda name: len(name) < 250))
def test_a_question_is_the_one_that_others_ask(name: str) -> None:
    try:
        mine = question(7, name)
    except ValueError:
        assert name.startswith("xn--") or ".xn--" in name
        return
    theirs = dns.message.from_wire(mine)
    assert (theirs.id, theirs.question[0].name.to_text()) == (7, f"{name}.")
