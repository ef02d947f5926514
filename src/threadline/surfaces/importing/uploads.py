"""Files that were uploaded to be imported: each is tried as a whole, then recorded, and says how far it has come."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml

from threadline.capabilities.foundation.events.causes import must_be_confirmed, words
from threadline.engine.engine import Engine
from threadline.kernel.audit import AuditEntry
from threadline.kernel.consequences import Consequences
from threadline.kernel.errors import Conflict, InvalidValue, LimitExceeded, NotFound, ThreadlineError
from threadline.kernel.event import Event
from threadline.kernel.ids import short_hash
from threadline.kernel.limits import UPLOAD_BYTES_MAX, UPLOADS_MAX
from threadline.kernel.personal import Copy
from threadline.kernel.time import format_time
from threadline.surfaces.importing.files import CSV_ENDINGS, JSON_ENDINGS, BadRow, open_rows
from threadline.surfaces.importing.guessing import Column, columns_of, delimiter_of
from threadline.surfaces.importing.recording import Summary, check_file, foretell_file, import_file
from threadline.surfaces.importing.rows import Plan, Problem, preview
from threadline.wire.table import parse_mapping

SOURCE = "import"
"""Of the events, where the form names none. Keys count for each source alone."""
REJECTS_MAX = 100_000
"""Rows that were not recorded of which the reason is kept to be downloaded; the rejected log has them all."""

State = Literal["new", "checking", "checked", "importing", "done", "stopped", "failed"]
_BUSY = frozenset({"checking", "importing"})


class _Stopped(Exception):
    """Ends the work on a file between two batches."""


class Upload:
    """A file, the mapping that was chosen last, and what is known of its rows."""

    def __init__(self, path: Path, workspace: str, by: str, at: int) -> None:
        self.id = short_hash(workspace, by, str(at), path.name)[:16]
        self.path = path
        self.workspace = workspace
        self.by = by
        self.at = at
        self.delimiter = delimiter_of(path)
        self.state: State = "new"
        self.fields: Mapping[str, str] = {}
        """The form of its mapping, as it was filled in."""
        self.declared: Mapping[str, Any] = {}
        """The mapping of the look or of the import, as it is declared."""
        self.summary = Summary()
        self.consequences = Consequences()
        self.foretold_rows = 0
        self.problem = ""
        self.hint = ""
        self.done = 0.0
        """The share of the file that has been read."""
        self.rejects: dict[int, Problem] = {}
        self.examples: list[dict[str, Any]] = []
        self.stopping = threading.Event()

    @property
    def is_busy(self) -> bool:
        """Whether its rows are being read."""
        return self.state in _BUSY

    def go_on(self) -> None:
        """Raise what ends the work, if somebody has stopped it."""
        if self.stopping.is_set():
            raise _Stopped

    def columns(self) -> list[Column]:
        """Its columns. Raises `InvalidValue` for a file that cannot be read."""
        return columns_of(self.path, self.delimiter)

    def read_again(self, delimiter: str) -> None:
        """Read its columns with another delimiter, as if it had come just now. Raises `InvalidValue` where there are
        none then, and `Conflict` while it is being read."""
        if self.is_busy:
            raise Conflict("the file is being read; stop it first")
        before, self.delimiter = self.delimiter, delimiter
        try:
            self.columns()
        except InvalidValue:
            self.delimiter = before
            raise
        self.state, self.fields, self.declared, self.problem, self.hint = "new", {}, {}, "", ""

    def shown(self) -> dict[str, Any]:
        """What pages show of it."""
        summary = self.summary
        return {
            "id": self.id,
            "name": self.path.name,
            "by": self.by,
            "at": format_time(self.at),
            "size": self.path.stat().st_size,
            "delimiter": self.delimiter,
            "state": self.state,
            "is_busy": self.is_busy,
            "done": self.done,
            "problem": self.problem,
            "hint": self.hint,
            "rows": summary.rows,
            "accepted": summary.accepted,
            "duplicates": summary.duplicates,
            "conflicts": summary.conflicts,
            "rejected": summary.rejected,
            "skipped": summary.skipped,
            "problems": [problem._asdict() for problem in summary.problems],
            "lacking": sorted(summary.lacking or ()),
            "causes": words(self.consequences) if self.foretold_rows else "",
            "foretold_rows": self.foretold_rows,
            "must_be_confirmed": must_be_confirmed(self.consequences),
            "examples": self.examples,
            "yaml": yaml.safe_dump(dict(self.declared), sort_keys=False, allow_unicode=True) if self.declared else "",
        }

    def rejected_rows(self) -> Iterator[str]:
        """The rows that were not recorded as CSV: the number, why, and the cells as they stand in the file."""
        rejects = dict(self.rejects)
        with closing(open_rows(self.path, self.delimiter)) as file:
            columns = list(file.columns() or ())
            yield _line(["row", "code", "reason", *columns, *([] if columns else ["line"])])
            last = max(rejects, default=0)
            for number, row in enumerate(file.rows(), 1):
                if number > last:
                    return
                if (problem := rejects.get(number)) is None:
                    continue
                about = [str(number), problem.code, problem.message]
                if isinstance(row, BadRow):
                    yield _line([*about, row.raw])
                elif columns:
                    yield _line([*about, *(_text(row.get(name, "")) for name in columns)])
                else:
                    yield _line([*about, _text(dict(row))])


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _line(cells: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()


class Uploads:
    """The uploads of a process; who restarts it uploads the file again, and the import goes on where it was."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._uploads: dict[str, Upload] = {}
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def add(self, workspace: str, name: str, content: bytes, by: str, at: int) -> Upload:
        """Keep a file. Raises `InvalidValue` for one of no known form, `LimitExceeded` for one that is too large."""
        if len(content) > UPLOAD_BYTES_MAX:
            raise too_large()
        if not content:
            raise InvalidValue("the file is empty, or none was chosen", param="file")
        plain = _file_name(name)
        with self._lock:
            self._make_room()
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="threadline-imports-"))
            place = self._folder / short_hash(workspace, by, str(at), plain)[:16]
            place.mkdir(exist_ok=True)
            (place / plain).write_bytes(content)
            try:
                upload = Upload(place / plain, workspace, by, at)
                upload.columns()
            except ThreadlineError:
                shutil.rmtree(place, ignore_errors=True)
                raise
            self._uploads[upload.id] = upload
        return upload

    def _make_room(self) -> None:
        idle = [upload for upload in self._uploads.values() if not upload.is_busy]
        if len(self._uploads) >= UPLOADS_MAX and not idle:
            raise LimitExceeded(f"{UPLOADS_MAX} files are being imported; wait for one of them")
        for upload in idle[: max(0, len(self._uploads) - UPLOADS_MAX + 1)]:
            self._forget(upload)

    def _forget(self, upload: Upload) -> None:
        self._uploads.pop(upload.id, None)
        shutil.rmtree(upload.path.parent, ignore_errors=True)

    def listed(self, workspace: str) -> list[Upload]:
        """The uploads of a workspace, the newest first."""
        return [upload for upload in reversed(self._uploads.values()) if upload.workspace == workspace]

    def get(self, workspace: str, id: str) -> Upload:
        """One of them; raises `NotFound`."""
        upload = self._uploads.get(id)
        if upload is None or upload.workspace != workspace:
            raise NotFound("this file is not here any more", hint="Upload it again: an import goes on where it was.")
        return upload

    def remove(self, upload: Upload) -> None:
        """Remove a file. Raises `Conflict` while it is being read."""
        if upload.is_busy:
            raise Conflict("the file is being read; stop it first")
        with self._lock:
            self._forget(upload)

    def check(self, engine: Engine, upload: Upload, declared: Mapping[str, Any]) -> None:
        """Begin to look at all rows, as they would be recorded. Raises `InvalidDefinition` for a wrong mapping."""
        plan = self._plan(upload, declared)
        upload.examples = [_example(row) for row in preview(plan, engine.now())]

        def rehearsed(rows: int) -> None:
            upload.foretold_rows = rows
            upload.go_on()

        def work() -> None:
            upload.foretold_rows = 0
            upload.summary = check_file(engine.catalogue, plan, _advance(upload), _noted(upload))
            upload.done = 1.0
            upload.consequences, upload.foretold_rows = foretell_file(engine, plan, advance=rehearsed)
            upload.state = "checked"

        self._begin(upload, "checking", declared, work)

    def start(self, engine: Engine, upload: Upload, *, confirmed: bool) -> None:
        """Begin to record all rows by the mapping of the last look at them. Raises `Conflict` where there was none, and
        `LimitExceeded` if it sends so much that somebody has to confirm it."""
        if upload.state not in ("checked", "stopped"):
            raise Conflict("the file was not checked yet", hint="Check all rows, then import them.")
        declared, plan = upload.declared, self._plan(upload, upload.declared)
        if must_be_confirmed(upload.consequences) and not confirmed:
            raise LimitExceeded(f"this would cause {words(upload.consequences)}", hint="Confirm that it is meant.")

        def work() -> None:
            upload.summary = import_file(engine, plan, advance=_advance(upload), noted=_noted(upload))
            upload.state = "done"
            _audit(engine, upload, upload.summary)

        self._begin(upload, "importing", declared, work)

    def _plan(self, upload: Upload, declared: Mapping[str, Any]) -> Plan:
        source = upload.fields.get("source", "").strip() or SOURCE
        return Plan(upload.path, parse_mapping(declared), upload.workspace, source, upload.delimiter)

    def _begin(self, upload: Upload, state: State, declared: Mapping[str, Any], work: Callable[[], None]) -> None:
        with self._lock:
            if upload.is_busy:
                raise Conflict("the file is being read already")
            upload.state, upload.declared = state, dict(declared)
            upload.summary, upload.rejects, upload.done, upload.problem, upload.hint = Summary(), {}, 0.0, "", ""
            upload.stopping.clear()
            thread = threading.Thread(target=_guarded, args=(upload, work), name="threadline-import", daemon=True)
            self._threads = [other for other in self._threads if other.is_alive()]
            self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """Stop what is being read, after the batch that it is at. What was recorded stays."""
        for upload in self._uploads.values():
            upload.stopping.set()
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """Stop, and remove all files."""
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._uploads.clear()


def too_large() -> LimitExceeded:
    """What is raised for a file that is larger than an upload may be."""
    return LimitExceeded(
        f"a file may have {UPLOAD_BYTES_MAX // 1_048_576} MB here",
        hint="Pack it with gzip, divide it, or take `threadline import`, which has no limit.",
        param="file",
    )


def _file_name(name: str) -> str:
    """The name of a file without its folders, as keys and messages have it."""
    plain = name.replace("\\", "/").rpartition("/")[2].replace("\0", "").strip().strip(".")
    plain = "".join(sign if sign.isprintable() else "_" for sign in plain)[-120:]
    known = (*CSV_ENDINGS, *JSON_ENDINGS)
    if not plain.lower().removesuffix(".gz").endswith(known) or plain.lower() in known:
        raise InvalidValue(f"the name of the file must end in {', '.join(known)}, with or without .gz", param="file")
    return plain


def _advance(upload: Upload) -> Callable[[Summary, int], None]:
    size = max(upload.path.stat().st_size, 1)

    def advance(summary: Summary, done: int) -> None:
        upload.summary, upload.done = summary, min(done / size, 1.0)
        upload.go_on()

    return advance


def _noted(upload: Upload) -> Callable[[Problem], None]:
    def noted(problem: Problem) -> None:
        if len(upload.rejects) < REJECTS_MAX:
            upload.rejects[problem.row] = problem

    return noted


def _guarded(upload: Upload, work: Callable[[], None]) -> None:
    try:
        work()
        upload.done = 1.0
    except _Stopped:
        upload.state = "new" if upload.state == "checking" else "stopped"
    except ThreadlineError as error:
        upload.problem, upload.hint, upload.state = str(error), error.hint, "failed"
    except Exception as error:  # a page has to say that it is over
        upload.problem, upload.state = f"{type(error).__name__}: {error}"[:500], "failed"
        raise


def _audit(engine: Engine, upload: Upload, summary: Summary) -> None:
    entry = AuditEntry(
        at=engine.clock(),
        who=upload.by,
        credential="account",
        surface="console",
        operation="import",
        object={},
        given={"accepted": summary.accepted, "rejected": summary.rejected},
        outcome="done",
    )
    with suppress(ThreadlineError):  # what was recorded is; the log of the server has why this is not
        engine.audit_log.note(upload.workspace, entry)


def _example(read: Any) -> dict[str, Any]:
    if isinstance(read, Event):
        return {
            "type": read.type,
            "at": format_time(read.occurred_at),
            "identifiers": [f"{identifier.kind}:{identifier.value}" for identifier in read.identifiers],
            "properties": read.properties,
            "key": read.key,
            "problem": "",
        }
    return {"problem": read.message}


COPY = Copy(
    "files uploaded to be imported",
    why="they are whole files of others, in a folder that goes with the server; their page removes one at once",
)
