"""The export of a person, as every surface offers it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

from threadline.capabilities.ask.export.archive import archive_of
from threadline.capabilities.foundation.events.forms import PersonRef
from threadline.capabilities.profile.people.operations import PEOPLE_GROUP
from threadline.kernel.operation import Context, Params, always, operation
from threadline.kernel.personal import Subject


class ExportParams(Params, kw_only=True):
    """Whose data. Of a person merged into another one it is everything of the one who is left."""

    id: PersonRef


@operation(
    "GET /v1/people/{id}/export",
    PEOPLE_GROUP,
    is_long=always,
    scope="admin",
    media_type="application/zip",
    example=ExportParams(id="user_id:42"),
)
def export(context: Context, params: ExportParams) -> Iterator[bytes]:
    """Write everything that is stored about a person into one archive."""
    engine = context.engine
    person = engine.reader.person(context.workspace, params.id)
    subject = Subject(engine, person, context.now, context.source)
    return archive_of(subject, engine.catalogue.person_files, _program())


def _program() -> str:
    try:
        return f"threadline {version('threadline')}"
    except PackageNotFoundError:
        return "threadline 0+source"
