"""The log of a process that serves or works: one line of JSON on stderr for each thing that is worth a look."""

from __future__ import annotations

import logging

import msgspec

from threadline.kernel.time import SECOND, format_time


class JsonLines(logging.Formatter):
    """A record as one line, however many its message or its traceback has."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end."""
        line = {
            "at": format_time(int(record.created * SECOND)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def log_lines() -> None:
    """Log warnings and worse in this form from now on, our own and those of what we use; of definitions also news."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("threadline.definitions").setLevel(logging.INFO)
