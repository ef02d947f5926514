"""The usual peer: the same log through SQLAlchemy's ORM, where each event is selected first and added if absent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from sqlalchemy import Engine, Index, create_engine, func, insert, select, text
from sqlalchemy import event as listening
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from bench.side import FILLING_PRAGMAS, SYNCED_PRAGMAS, strongest
from threadline.kernel.event import Event


class _Base(DeclarativeBase):
    pass


class _Log(_Base):
    __tablename__ = "log"
    position: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(unique=True)
    person: Mapped[str]
    occurred_at: Mapped[int]
    type: Mapped[str]
    body: Mapped[bytes]
    __table_args__ = (Index("log_person", "person", "occurred_at"),)


class SqlAlchemySelectThenAdd:
    """One session and one commit a batch; per event the select that idempotency by hand asks for."""

    def __init__(self, path: Path) -> None:
        self._encode = msgspec.json.Encoder().encode
        self._engine = _engine(path)
        _Base.metadata.create_all(self._engine)

    def fill(self, batches: Iterable[list[Event]]) -> None:
        """Bulk insert through Core, which is not what is measured."""
        with self._engine.connect() as connection:
            _apply(connection.connection.cursor(), FILLING_PRAGMAS)
            for batch in batches:
                lines = [self._values(event) for event in batch]
                connection.execute(insert(_Log).prefix_with("OR IGNORE"), lines)
                connection.commit()
            _apply(connection.connection.cursor(), SYNCED_PRAGMAS)
            connection.execute(text("PRAGMA wal_checkpoint(TRUNCATE)"))

    def record(self, events: list[Event]) -> None:
        """Select, add if absent, commit once."""
        with Session(self._engine) as session:
            for event in events:
                values = self._values(event)
                if session.scalar(select(_Log.position).where(_Log.key == values["key"])) is None:
                    session.add(_Log(**values))
            session.commit()

    def _values(self, event: Event) -> dict[str, object]:
        return {
            "key": f"{event.workspace}/{event.source}/{event.key}",
            "person": strongest(event),
            "occurred_at": event.occurred_at,
            "type": event.type,
            "body": self._encode((event.identifiers, event.received_at, event.properties, event.context)),
        }

    def count(self) -> int:
        """Events in the log."""
        with Session(self._engine) as session:
            return session.scalar(select(func.count()).select_from(_Log)) or 0

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()


def _engine(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}")

    @listening.listens_for(engine, "connect")
    def tune(connection: object, _: object) -> None:
        _apply(connection.cursor(), SYNCED_PRAGMAS)  # type: ignore[attr-defined]  # a DB-API connection, untyped there

    return engine


def _apply(cursor: object, pragmas: Iterable[str]) -> None:
    for pragma in pragmas:
        cursor.execute(f"PRAGMA {pragma}")  # type: ignore[attr-defined]  # a DB-API cursor, untyped in SQLAlchemy
