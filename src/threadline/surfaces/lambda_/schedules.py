"""Wake-ups by EventBridge Scheduler: a schedule for one minute, which calls a function once and is deleted then.

A schedule is named after its minute and never changed. So two functions that look at the same time, one of them before
and one after a timer was set, make two schedules and neither undoes the other's; making one twice is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from threadline.kernel.aws_errors import error_code, explained
from threadline.kernel.errors import Forbidden, NotFound, ThreadlineError
from threadline.kernel.time import MINUTE, SECOND, format_time
from threadline.settings import Settings
from threadline.surfaces.queues.client import aws_client

AHEAD = 20 * SECOND
"""A schedule for an instant that has passed when it is made would never call anybody."""
_MADE_MAX = 1_000


class WakeUps:
    """Makes schedules. Without a target it makes none: only the schedules of the template wake the function then."""

    def __init__(self, settings: Settings, client: Callable[[], Any]) -> None:
        self._settings = settings
        self._open = client
        self._client: Any = None
        self._made: dict[str, None] = {}
        """Names of those that this process has made, which need not be asked for again."""

    def wake_at(self, at: int, now: int) -> None:
        """Let the target be called within the minute after this instant, or soon if that has passed."""
        if not self._settings.schedule_target:
            return
        minute = -(-max(at, now + AHEAD) // MINUTE) * MINUTE
        text = format_time(minute)[:19]
        name = f"threadline-{text[:16].replace(':', '-')}"
        if name in self._made:
            return
        self._create(name, text)
        while len(self._made) >= _MADE_MAX:
            self._made.pop(next(iter(self._made)))
        self._made[name] = None

    def _create(self, name: str, text: str) -> None:
        settings = self._settings
        try:
            if self._client is None:
                self._client = self._open()
            self._client.create_schedule(
                Name=name,
                GroupName=settings.schedule_group,
                ScheduleExpression=f"at({text})",
                ScheduleExpressionTimezone="UTC",
                FlexibleTimeWindow={"Mode": "OFF"},
                ActionAfterCompletion="DELETE",
                Target={"Arn": settings.schedule_target, "RoleArn": settings.schedule_role, "Input": "{}"},
            )
        except Exception as error:
            code = error_code(error)
            if code == "ConflictException":  # somebody else has made it
                return
            raise _explained(error, settings) from error


def _explained(error: Exception, settings: Settings) -> ThreadlineError:
    if error_code(error) == "ResourceNotFoundException":
        hint = "Make it, or name another with THREADLINE_SCHEDULE_GROUP."
        return NotFound(f"there is no schedule group {settings.schedule_group!r}", hint=hint)
    explanation = explained(error, "scheduler", f"the schedule group {settings.schedule_group!r}")
    if isinstance(explanation, Forbidden):
        role = settings.schedule_role or "the role that schedule_role names"
        return Forbidden(str(explanation), hint=f"Allow scheduler:CreateSchedule on it, and iam:PassRole on {role}.")
    return explanation


def scheduler_client() -> Any:
    """The client of EventBridge Scheduler. Raises `InvalidSetting` where boto3 is missing."""
    return aws_client("scheduler", "EventBridge Scheduler")
