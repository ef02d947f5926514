"""The parts of a person's memory: pieces by what tells them apart, packed as long as nothing touches them."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import msgspec

from threadline.capabilities.memory.pieces import Piece

State = dict[str, Any]
Pieces = dict[str, Any]
"""The pieces of one derivation by what tells them apart; values may be packed."""

RETRACTED_FACTS, SORTED_OUT = "!", "~"
"""The parts of the facts that were taken back, and of when facts that expire were sorted out."""

unpack = msgspec.msgpack.Decoder().decode
_unpack_pieces = msgspec.msgpack.Decoder(dict[str, msgspec.Raw]).decode
_pack = msgspec.msgpack.Encoder(order="sorted").encode


def opened(state: State, code: str) -> Pieces:
    """The pieces of a part, each of them still packed if the part was."""
    part = state.get(code)
    if part is None:
        return {}
    return _unpack_pieces(part) if part.__class__ is msgspec.Raw else part


def close(state: State, code: str, pieces: Pieces, packed: bool) -> None:
    """Put the pieces of a part back, packed or as they are; of what has none left nothing stays."""
    if pieces:
        state[code] = msgspec.Raw(_pack(pieces)) if packed else pieces
    else:
        state.pop(code, None)


def piece_of(pieces: Pieces, part: str) -> Piece | None:
    """One piece, which is unpacked from now on; None if there is none."""
    piece: Any = pieces.get(part)
    if piece.__class__ is msgspec.Raw:
        piece = pieces[part] = unpack(piece)
    return piece  # type: ignore[no-any-return]


@lru_cache(maxsize=65_536)
def hash_of(part: str) -> bytes:
    """What decides which of too many pieces stay, whatever came first."""
    return hashlib.blake2b(part.encode("utf-8", "surrogatepass"), digest_size=8).digest()
