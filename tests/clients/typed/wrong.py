"""What `mypy --strict` finds: each marked line has the error that it names, and no other line has one."""

from __future__ import annotations

from threadline import AsyncClient, Client, Threadline


def names(shop: Threadline, server: Client) -> None:
    shop.evnts.of("ada")  # error: attr-defined
    shop.events.off("ada")  # error: attr-defined
    server.segments.membrs("vip")  # error: attr-defined
    shop.events.of("ada", limt=10)  # error: call-arg
    server.events.of("ada", limt=10)  # error: call-arg


def values(shop: Threadline) -> None:
    shop.events.of("ada", limit="10")  # error: arg-type
    shop.events.of("ada", order="up")  # error: arg-type
    shop.people.tag("ada", add="vip")  # error: arg-type
    shop.points.spend("ada", points=7)  # error: call-arg
    shop.events.of(42)  # error: arg-type


def answers(shop: Threadline) -> int:
    _ = shop.segments.members("vip").membrs  # error: attr-defined
    _ = shop.track("ada", "page").state  # error: attr-defined
    return shop.person("ada").id  # error: return-value


async def awaited(server: AsyncClient) -> None:
    await server.evnts.of("ada")  # error: attr-defined
    _ = server.person("ada").position  # error: attr-defined
