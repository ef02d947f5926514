"""Wake-ups by EventBridge Scheduler: a schedule for one minute, which calls a function once and is deleted then.

A schedule is named after its minute and never changed. So two functions that look at the same time, one of them before
and one after a timer was set, make two schedules and neither undoes the other's; making one twice is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from threadline.kernel.errors import InvalidSetting, Unavailable
from threadline.kernel.time import MINUTE, SECOND, format_time
from threadline.settings import Settings

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
                Name=name, GroupName=settings.schedule_group, ScheduleExpression=f"at({text})",
                ScheduleExpressionTimezone="UTC", FlexibleTimeWindow={"Mode": "OFF"}, ActionAfterCompletion="DELETE",
                Target={"Arn": settings.schedule_target, "RoleArn": settings.schedule_role, "Input": "{}"},
            )  # fmt: skip
        except Exception as error:  # noqa: BLE001 — botocore makes the classes of its errors when it runs
            code = getattr(error, "response", {}).get("Error", {}).get("Code", "")
            if code == "ConflictException":  # somebody else has made it
                return
            raise Unavailable(
                f"no schedule could be made for {text} UTC: {type(error).__name__}: {error}", hint=_hint(code, settings)
            ) from None


def _hint(code: str, settings: Settings) -> str:
    if code in ("AccessDeniedException", "AccessDenied"):
        return (
            f"allow scheduler:CreateSchedule on the group {settings.schedule_group!r}, and iam:PassRole on "
            f"{settings.schedule_role or 'the role that schedule_role names'}"
        )
    if code == "ResourceNotFoundException":
        return f"make the schedule group {settings.schedule_group!r}, or name another with THREADLINE_SCHEDULE_GROUP"
    return "what is due stays due, and is done when the function is called again"


def scheduler_client() -> Any:
    """The client of EventBridge Scheduler. Raises `InvalidSetting` where boto3 is missing."""
    try:
        import boto3
    except ImportError:
        raise InvalidSetting(
            "EventBridge Scheduler cannot be asked: boto3 is not installed", hint="pip install 'threadline[aws]'"
        ) from None
    return boto3.session.Session().client("scheduler")
