"""A result that is a file: sent in pieces, each made when the one before it has left."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

from starlette.responses import StreamingResponse

from threadline.kernel.operation import Operation
from threadline.surfaces.lanes import LaneName, Lanes


async def downloaded(
    lanes: Lanes, lane: LaneName, begin: Callable[[], Iterator[bytes]], operation: Operation
) -> StreamingResponse:
    """The pieces that ``begin`` makes for an operation with a media type. What it raises up to the first piece is
    raised here; later the connection breaks off."""
    pieces = await lanes.run(lane, begin)

    def following() -> bytes:
        return next(pieces, b"")

    first = await lanes.run(lane, following, is_begun=True)

    async def rest() -> AsyncIterator[bytes]:
        piece = first
        while piece:
            yield piece
            piece = await lanes.run(lane, following, is_begun=True)

    name = f"{operation.name}.{operation.media_type.rpartition('/')[2]}"
    headers = {"cache-control": "no-store", "content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(rest(), operation.status, headers, operation.media_type)
