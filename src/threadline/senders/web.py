"""Fetches what is at a public address, such as the certificate with which a provider signs."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.kernel.errors import Unavailable
from threadline.outgoing.allowed_addresses import Network, Refused
from threadline.outgoing.name_server import texts_of
from threadline.outgoing.public_call import Failed, HttpCaller

TIMEOUT_SECONDS = 10.0


class Web:
    """Calls only public addresses, over TLS. Thread-safe."""

    def __init__(self, networks: Sequence[Network] = ()) -> None:
        self._caller = HttpCaller(networks)

    def get(self, url: str, bytes_max: int) -> bytes:
        """The body at an address, at most so long. Raises `Unavailable`."""
        try:
            answer = self._caller.get(url, TIMEOUT_SECONDS, bytes_max)
        except (Refused, Failed) as error:
            raise Unavailable(f"{url[:200]} cannot be fetched: {error}") from None
        if not 200 <= answer.status < 300:
            raise Unavailable(f"{url[:200]} cannot be fetched: status {answer.status}")
        return answer.body

    def texts(self, name: str) -> list[str]:
        """What DNS has of a name as texts. Raises `Unavailable`."""
        return texts_of(name)
