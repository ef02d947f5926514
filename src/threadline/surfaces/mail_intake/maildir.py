"""A Maildir: what a mail server puts into ``new`` is taken, and moved to ``cur`` once that is durable."""

from __future__ import annotations

import threading
from pathlib import Path

from threadline.kernel.errors import InvalidSetting
from threadline.surfaces.mail_intake.intake import Intake, log

PAUSE_SECONDS = 1.0
BYTES_MAX = 2_500_000
"""What is read of a mail: more than any report has."""
_SEEN = ":2,S"


class Maildir:
    """Takes mails in the order of their names, which begin with the time of delivery."""

    def __init__(self, folder: Path, intake: Intake) -> None:
        self._new, self._cur = folder / "new", folder / "cur"
        if not self._new.is_dir() or not self._cur.is_dir():
            raise InvalidSetting(f"{folder} is no Maildir: it has no folders new and cur")
        self._intake = intake
        self._refused: set[str] = set()
        """Mails that cannot be taken stay where they are; each is logged once."""

    def take_all(self) -> bool:
        """Take what lies there; whether something has to be tried again soon."""
        later = False
        for file in sorted(self._new.iterdir()):
            if file.name in self._refused or file.name.startswith("."):
                continue
            try:
                with file.open("rb") as mail:
                    raw = mail.read(BYTES_MAX)
            except FileNotFoundError:  # another process was faster
                continue
            result = self._intake.mail(raw)
            if result == "taken":
                # Under its name alone: a crash before this leaves it in `new`, and taking it again changes nothing.
                file.rename(self._cur / f"{file.name.partition(':')[0]}{_SEEN}")
            elif result == "refused":
                self._refused.add(file.name)
            else:
                later = True
        return later

    def watch(self, stopping: threading.Event) -> None:
        """Take what comes until ``stopping`` is set."""
        while not stopping.is_set():
            later = self.take_all()
            stopping.wait(10 * PAUSE_SECONDS if later else PAUSE_SECONDS)
        log.info("stopped")
