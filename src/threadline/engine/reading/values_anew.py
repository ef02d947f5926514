"""Values of people that nobody keeps: everybody is looked at for each question."""

from __future__ import annotations

from collections.abc import Callable

from threadline.engine.reading.person_reader import PersonReader
from threadline.kernel.ports import ValueAsked, ValuesRead

PAGE = 200
"""People between two looks at the clock."""


class ValuesAnew:
    """See `PeopleValues`; what `StoredValues` answers equals this."""

    def __init__(self, reader: PersonReader) -> None:
        self._reader = reader

    def read(self, asked: ValueAsked, is_over: Callable[[], bool] = lambda: False) -> ValuesRead:
        """See `PeopleValues.read`."""
        values, after = [], ""
        while True:
            page, after = self._reader.people(asked.workspace, after, PAGE)
            values += [(person.id, asked.look(person, asked.now)[0]) for person in page]
            if not after or is_over():
                return ValuesRead(values, after, asked.now)

    def close(self) -> None:
        """There is nothing to release."""
