"""Pictures in the store: what is known of each, and its bytes in parts.

The id of a picture is made of its bytes, its workspace and a key of the store, so that the same file uploaded twice is
one picture, its address never shows another one, and nobody can guess it, who has the file neither.
"""

from __future__ import annotations

from hashlib import sha256

import msgspec

from threadline.capabilities.reach.mail.pictures.content import MEDIA_TYPES, Kind
from threadline.kernel.documents import Documents, Stored, changed
from threadline.kernel.errors import LimitExceeded, NotFound
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import PICTURES_MAX
from threadline.kernel.personal import StoreTable
from threadline.kernel.ports import Ports
from threadline.kernel.store import Batch, Delete, Key, Put, Store
from threadline.kernel.typed import prepared

PICTURE, CONTENT = "picture", "picture_content"
"""Tables: what is known of each picture of a workspace, and the bytes of each, by its id."""
PART_BYTES = 300_000
"""Of an item: DynamoDB takes 400 KB with its key."""


@prepared
class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """A picture without its bytes."""

    id: str
    name: str
    """That of the file that was uploaded."""
    type: str
    width: int
    height: int
    size: int
    """In bytes."""
    parts: int
    at: int
    by: str

    @property
    def file(self) -> str:
        """The last part of its address, by which templates name it."""
        return f"{self.id}.{self.type}"


_PICTURES = Documents(PICTURE, Picture)


def id_of(ports: Ports, workspace: str, content: bytes) -> str:
    """The id of a picture with these bytes."""
    return short_hash(ports.signer.sign(PICTURE, workspace, sha256(content).hexdigest()))


def add(ports: Ports, workspace: str, made: Picture, content: bytes) -> Picture:
    """Store a picture; one with the same bytes stays as it is. Raises `LimitExceeded` where there are too many."""

    def attempt() -> Picture | None:
        there = _PICTURES.find(ports.store, workspace, made.id)
        if there is not None:
            return there.document
        if len(_PICTURES.page(ports.store, workspace, "", PICTURES_MAX)) >= PICTURES_MAX:
            raise LimitExceeded(
                f"this workspace has {PICTURES_MAX:,} pictures, and no more are taken",
                hint="`pictures_delete` removes those that no template uses.",
            )
        writes = [_PICTURES.put(workspace, made.id, made, 0)]
        begins = range(0, len(content), PART_BYTES)
        for number, begin in enumerate(begins):
            writes.append(Put(_part(made.id, number), content[begin : begin + PART_BYTES], 0))
        return made if ports.store.commit([Batch(writes=writes)])[0] is None else None

    return changed("this picture", attempt)


def new_picture(id: str, name: str, kind: Kind, size: int, at: int, by: str) -> Picture:
    """A picture that is to be added."""
    parts = -(-size // PART_BYTES)
    return Picture(id=id, name=name, **kind._asdict(), size=size, parts=parts, at=at, by=by)


def find(store: Store, workspace: str, id: str) -> Stored[Picture]:
    """A picture; raises `NotFound`."""
    stored = _PICTURES.find(store, workspace, id)
    if stored is None:
        raise NotFound(f"there is no picture {id[:64]!r}", hint="`pictures_list` lists them all")
    return stored


def pictures(store: Store, workspace: str) -> list[Picture]:
    """All of a workspace, the newest first."""
    listed = (picture for _, picture in _PICTURES.all(store, workspace))
    return sorted(listed, key=lambda picture: (-picture.at, picture.id))


def delete(store: Store, workspace: str, stored: Stored[Picture]) -> bool:
    """Take a picture away with its bytes; False: another process has done so."""
    picture = stored.document
    writes: list[Put | Delete] = [_PICTURES.delete(workspace, picture.id, stored.version)]
    keys = [_part(picture.id, number) for number in range(picture.parts)]
    writes += [Delete(key, item.version) for key, item in zip(keys, store.get(keys), strict=True) if item is not None]
    return store.commit([Batch(writes=writes)])[0] is None


def content_of(store: Store, file: str) -> tuple[bytes, str] | None:
    """The bytes of a picture and their media type, by the last part of its address; None: there is none."""
    id, _, type = file.partition(".")
    if type not in MEDIA_TYPES or not id.isalnum() or len(id) > 64:
        return None
    items = store.query(CONTENT, id)
    return (b"".join(item.value for item in items), MEDIA_TYPES[type]) if items else None


def _part(id: str, number: int) -> Key:
    return Key(CONTENT, id, f"{number:04d}")


TABLES = (
    StoreTable(PICTURE, "nobody", why="pictures of mails, which are the same for everybody"),
    StoreTable(CONTENT, "nobody", why="the bytes of pictures of mails"),
)
