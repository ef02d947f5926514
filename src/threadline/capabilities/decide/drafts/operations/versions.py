"""Versions of what is made by hand: listed, compared, gone back to; and a definition deleted from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import unified_diff
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts import by_hand
from threadline.capabilities.decide.drafts import uses as in_use
from threadline.capabilities.decide.drafts.operations.proposals import Note
from threadline.capabilities.decide.drafts.sections import AnySection, Name, SectionName, names_of
from threadline.capabilities.foundation.definitions import versions as stored
from threadline.capabilities.foundation.definitions.applying import ChangeView
from threadline.capabilities.foundation.definitions.schema import DEFINITIONS_GROUP
from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.foundation.jobs.operations import JobView
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Params, always, operation

LINES_MAX = 5_000
"""Of a difference that are shown."""
Number = Annotated[int, Meta(description="The number of the version.", ge=1)]
Former = Annotated[int, Meta(description="The number of the version; 0: the empty text before the first.", ge=0)]


class VersionsParams(Params, kw_only=True):
    """Which page."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    before: Annotated[int, Meta(description="Only versions below this number; 0: from the newest.", ge=0)] = 0


@key_fields("number", "at", "by", "note")
class VersionView(msgspec.Struct, kw_only=True):
    """A version of what is made by hand."""

    number: int
    by: Annotated[str, Meta(description="Who put it in force.")]
    proposed_by: Annotated[str, Meta(description="Who had proposed what changed; empty: the same.")]
    at: Instant
    note: str
    restores: Annotated[int, Meta(description="The version that it goes back to; 0: none.")]
    changes: Annotated[list[ChangeView], Meta(description="What is different from the version before; the first 50.")]
    changed: Annotated[int, Meta(description="How many definitions are different.")]


class VersionsResult(msgspec.Struct, kw_only=True):
    """Versions, the newest first: the first of all is in force."""

    versions: list[VersionView]
    in_force: Annotated[int, Meta(description="The number of the newest; 0: nothing was made by hand yet.")]
    here: Annotated[int, Meta(description="The number that this server goes by.")]
    next: Annotated[int, Meta(description="The `before` of the next page; 0: there is none.")] = 0


class VersionParams(Params, kw_only=True):
    """Which version, and what it is compared with."""

    version: Number
    against: Annotated[
        int, Meta(description="The number of another version; 0: an empty text; -1: the version before.", ge=-1)
    ] = -1


class VersionText(msgspec.Struct, kw_only=True):
    """A version with its text, beside another one."""

    version: VersionView
    text: Annotated[str, Meta(description="All that was made by hand, as a file of definitions.")]
    against: Annotated[int, Meta(description="The version that it is compared with.")]
    changes: Annotated[list[ChangeView], Meta(description="What is different from that one, by name.")]
    difference: Annotated[list[str], Meta(description="The same line by line, as `diff -u` writes it.")]


class GoBackParams(Params, kw_only=True):
    """Which version, and why."""

    version: Former
    seen: Annotated[
        int, Meta(description="The version in force that was looked at: refused if it no longer is. 0: any.", ge=0)
    ] = 0
    note: Annotated[Note, Meta(description="Why.")] = ""


class GoBackPreviewParams(Params, kw_only=True):
    """Which version."""

    version: Former


@key_fields("section", "name", "users")
class DefinitionUses(msgspec.Struct, kw_only=True):
    """What goes by a definition and is none itself."""

    section: str
    name: str
    users: Annotated[
        list[str],
        Meta(description="Rules, alerts, broadcasts that are not over, and how many people are in it; each in words."),
    ]


class UsesParams(Params, kw_only=True):
    """Of which definition; of all that are made by hand where none is named."""

    section: AnySection = ""
    name: Annotated[str, Meta(max_length=200)] = ""


class UsesResult(msgspec.Struct, kw_only=True):
    """Definitions that are used, by section and name."""

    uses: list[DefinitionUses]


class GoBackPreview(msgspec.Struct, kw_only=True):
    """What going back would change. Nothing was written."""

    in_force: Annotated[int, Meta(description="The version that is in force.")]
    changes: list[ChangeView]
    difference: list[str]
    problems: Annotated[list[str], Meta(description="Why it cannot be put in force beside the files as they are.")]
    uses: Annotated[
        list[DefinitionUses], Meta(description="What in this workspace uses a definition that it would remove.")
    ]


class DeleteParams(Params, kw_only=True):
    """Which definition, and why."""

    section: SectionName
    name: Name
    note: Annotated[Note, Meta(description="Why.")] = ""
    anyway: Annotated[
        bool, Meta(description="Delete it also where rules, alerts, broadcasts or people in it use it; see `uses`.")
    ] = False


class ByHandResult(msgspec.Struct, kw_only=True):
    """What is in force from now on."""

    version: Annotated[int, Meta(description="Of what is made by hand.")]
    job: Annotated[JobView, Meta(description="Recalculates everyone.")]


_WHERE = "/v1/definitions/versions"


@operation(
    f"GET {_WHERE}", DEFINITIONS_GROUP, shown_on=frozenset({"http", "python", "cli"}), example=VersionsParams(limit=10)
)
def versions(context: Context, params: VersionsParams) -> VersionsResult:
    """List the versions of what is made by hand: who, when, and what has changed."""
    store = context.engine.store
    listed = stored.versions(store, params.before, params.limit)
    return VersionsResult(
        versions=[_view(version) for version in listed],
        in_force=stored.newest_number(store),
        here=context.engine.maintenance.by_hand,
        next=listed[-1].number if len(listed) == params.limit and listed[-1].number > 1 else 0,
    )


@operation(
    f"GET {_WHERE}/{{version}}/text",
    DEFINITIONS_GROUP,
    shown_on=frozenset({"http", "python", "cli"}),
    example=VersionParams(version=1),
)
def version(context: Context, params: VersionParams) -> VersionText:
    """Show a version of what is made by hand, and what is different from another one."""
    store = context.engine.store
    view = _view(stored.version(store, params.version))
    against = params.version - 1 if params.against < 0 else params.against
    before, text = stored.text_of(store, against), stored.text_of(store, params.version)
    return VersionText(
        version=view,
        text=text,
        against=against,
        changes=_changes(context, before, text),
        difference=_difference(before, text, against, params.version),
    )


@operation(
    f"GET {_WHERE}/{{version}}/go-back",
    DEFINITIONS_GROUP,
    is_long=always,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=GoBackPreviewParams(version=1),
)
def preview_go_back(context: Context, params: GoBackPreviewParams) -> GoBackPreview:
    """Show what going back to a version of what is made by hand would change; nothing is written."""
    store = context.engine.store
    now, then = stored.newest(store), stored.text_of(store, params.version)
    problems: list[str] = []
    try:
        context.engine.maintenance.fingerprint_with(then)
    except ThreadlineError as error:
        problems = str(error).split("\n")
    changes = _changes(context, now.text, then)
    return GoBackPreview(
        in_force=now.number,
        changes=changes,
        difference=_difference(now.text, then, now.number, params.version),
        problems=problems,
        uses=_uses(context, [(change.section, change.name) for change in changes if change.change == "removed"]),
    )


@operation(
    "POST /v1/definitions/go-back",
    DEFINITIONS_GROUP,
    done=("Went back to version {version} of what is made by hand",),
    is_long=always,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=GoBackParams(version=1, note="the sale is over"),
)
def go_back(context: Context, params: GoBackParams) -> ByHandResult:
    """Go back to a former version of what is made by hand: its text becomes a new one, for everybody."""
    return _shown(by_hand.go_back(context, params.version, params.seen, params.note))


@operation(
    "GET /v1/definitions/uses",
    DEFINITIONS_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    example=UsesParams(section="segments", name="big_spenders"),
)
def uses(context: Context, params: UsesParams) -> UsesResult:
    """List what goes by definitions and is none itself: rules, alerts, broadcasts that are not over, people in them."""
    if params.section:
        return UsesResult(uses=_uses(context, [(params.section, params.name)]))
    made = _changes(context, "", stored.newest(context.engine.store).text)
    return UsesResult(uses=_uses(context, [(change.section, change.name) for change in made]))


@operation(
    "POST /v1/definitions/delete",
    DEFINITIONS_GROUP,
    done=("Deleted the {section} {name}",),
    is_long=always,
    scope="admin",
    shown_on=frozenset({"http", "python"}),
    example=DeleteParams(section="segments", name="big_spenders"),
)
def delete(context: Context, params: DeleteParams) -> ByHandResult:
    """Delete a definition that is made by hand; refused while something in force uses it."""
    return _shown(by_hand.take_away(context, params.section, params.name, params.note, anyway=params.anyway))


def _uses(context: Context, definitions: Sequence[tuple[str, str]]) -> list[DefinitionUses]:
    users = in_use.uses(context, definitions)
    return [DefinitionUses(section=section, name=name, users=by) for (section, name), by in users.items() if by]


def _shown(done: by_hand.InForce) -> ByHandResult:
    return ByHandResult(version=done.number, job=done.job)


def _view(version: stored.Version) -> VersionView:
    return VersionView(
        number=version.number,
        by=version.by,
        proposed_by=version.proposed_by,
        at=instant(version.at),
        note=version.note,
        restores=version.restores,
        changes=[_change(change) for change in version.changes],
        changed=version.changed,
    )


def _change(change: stored.Change) -> ChangeView:
    return ChangeView(change=change.change, section=change.section, name=change.name)


def _changes(context: Context, before: str, after: str) -> list[ChangeView]:
    named = names_of(context.engine.catalogue)
    return [_change(change) for change in by_hand.differences(before, after, named)]


def _difference(before: str, after: str, old: int, new: int) -> list[str]:
    lines: Iterator[str] = unified_diff(
        before.splitlines(), after.splitlines(), f"version {old}", f"version {new}", lineterm=""
    )
    return [line for _, line in zip(range(LINES_MAX), lines, strict=False)]
