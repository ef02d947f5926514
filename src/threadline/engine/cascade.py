"""The cascade: policies react to an event and to what they add because of it, within a bound on both."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from threadline.engine import wishes
from threadline.engine.catalogue import Catalogue
from threadline.engine.known import KnownPerson
from threadline.engine.person import Person
from threadline.engine.shared import SharedValues
from threadline.kernel.event import Recorded
from threadline.kernel.limits import CASCADE_EVENTS_MAX
from threadline.kernel.policy import Policy

if TYPE_CHECKING:
    from threadline.engine.group import Group


class Reactors:
    """Which policies want to see what, as things stand while one group is placed."""

    def __init__(self, catalogue: Catalogue, values: SharedValues) -> None:
        self._catalogue = catalogue
        self._values = values
        self._shared: dict[tuple[str, str], Any] = {}
        self._found: dict[tuple[str, str], tuple[Policy, ...]] = {}

    def look(self, workspaces: Iterable[str]) -> None:
        """Take in all that is shared in these workspaces now, so that whatever decides had begun by now."""
        names = {policy.shared.name for policy in self._catalogue.policies if policy.shared is not None}
        for workspace in workspaces:
            for name in names:
                self.shared(workspace, name)

    def shared(self, workspace: str, name: str) -> Any:
        """The value of a policy's `Shared`: one and the same for the whole group."""
        if (workspace, name) not in self._shared:
            self._shared[workspace, name] = self._values.current(workspace, name)
        return self._shared[workspace, name]

    def of(self, workspace: str, event_type: str) -> tuple[Policy, ...]:
        """The policies that want to see an event of this type in this workspace."""
        found = self._found.get((workspace, event_type))
        if found is None:
            found = tuple(
                policy
                for policy in self._catalogue.reactors(event_type)
                if policy.shared is None or policy.shared.heeds(self.shared(workspace, policy.shared.name), event_type)
            )
            self._found[workspace, event_type] = found
        return found


def cascade(group: Group, person: Person, first: Recorded) -> None:
    """Let policies react to an event and to what they add.

    What comes of one cause are at most `CASCADE_EVENTS_MAX` wishes, in no more writes than room was kept for; that
    there was more is said by an event.
    """
    queue = [first]
    added, writes = 0, 2  # of the event that says so
    while queue:
        recorded = queue.pop(0)
        reactors = group.reactors.of(recorded.event.workspace, recorded.event.type)
        if not reactors:
            continue
        known = KnownPerson(group, person, recorded)
        for policy in reactors:
            if not wishes.concerns(policy, recorded):
                continue
            for wish in policy.react(recorded, known):
                writes += wishes.writes_of(group.catalogue, wish)
                if added == CASCADE_EVENTS_MAX - 1 or writes > 2 * CASCADE_EVENTS_MAX:
                    wishes.report_cut(group, person, recorded, policy.name)
                    return
                added += 1
                emitted = wishes.grant(group, person, recorded, policy.name, wish)
                if emitted is not None:
                    queue.append(emitted)
