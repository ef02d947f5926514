"""What can be asked of the gallery: what there is, what each is made of, what it would do; and installing one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from threadline.capabilities.decide.drafts import by_hand
from threadline.capabilities.decide.drafts.draft import in_force
from threadline.capabilities.decide.drafts.operations.journeys import JourneyPreview, tried
from threadline.capabilities.decide.drafts.operations.proposals import Note
from threadline.capabilities.decide.drafts.sections import ASIDE, keys_of
from threadline.capabilities.decide.gallery.entries import (
    JOURNEYS,
    SENDERS,
    TEMPLATES,
    Entry,
    Piece,
    entries,
    entry_named,
    pieces_of,
)
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.document import BY_HAND
from threadline.capabilities.foundation.definitions.splicing import spliced, value_of
from threadline.capabilities.foundation.events.sample import Seconds
from threadline.capabilities.foundation.events.seen import seen_types
from threadline.capabilities.foundation.jobs.operations import JobView
from threadline.capabilities.reach.journeys.book import PAUSED
from threadline.capabilities.reach.journeys.declared import read_journeys
from threadline.capabilities.reach.journeys.drawing import entered_by, tree
from threadline.capabilities.reach.journeys.operations.definitions import StepCount, steps_of
from threadline.kernel.errors import Conflict, InvalidValue
from threadline.kernel.key_fields import key_fields
from threadline.kernel.operation import Context, Group, NoParams, Params, always, operation
from threadline.kernel.ports import Catalogue
from threadline.kernel.store import Delete, Key, Put
from threadline.kernel.suggestion import suggestion

GALLERY_GROUP = Group("gallery", "Journeys that ship with their mails, installed whole.")
EXAMPLE_ADDRESS = "hello@example.com"
"""Who a mail is from that is only looked at, where no sender is declared."""
NEW_SENDER = "main"

Name = Annotated[str, Meta(description="Its name in the gallery.", min_length=1, max_length=64)]
Suffix = Annotated[
    str,
    Meta(
        description="What is added to each name of it, such as `_2`, where one is taken.",
        max_length=20,
        pattern="^(_[a-z0-9_]*)?$",
    ),
]
Sender = Annotated[
    str,
    Meta(
        description="Who its mails are from: the name of a sender, needed where there are several; where there is "
        "none, an address, of which one is made.",
        max_length=320,
    ),
]


class GalleryParams(Params, kw_only=True):
    """Which, and under which names."""

    name: Name
    suffix: Suffix = ""


class GalleryMailsParams(GalleryParams, kw_only=True):
    """Which, and who its mails are from."""

    sender: Sender = ""


class GalleryPreviewParams(GalleryMailsParams, kw_only=True):
    """The same, and how far back."""

    days: Annotated[int, Meta(description="As if it had been in force for so many days.", ge=1, le=3_650)] = 90
    seconds: Seconds = 2


class InstallParams(GalleryMailsParams, kw_only=True):
    """The same, and how it begins."""

    paused: Annotated[bool, Meta(description="Whether nobody enters the journey before somebody resumes it.")] = False
    note: Annotated[Note, Meta(description="What it is for.")] = ""


@key_fields("name", "title", "mails", "installed")
class GallerySummary(msgspec.Struct, kw_only=True):
    """A journey of the gallery in one line."""

    name: str
    title: str
    description: str
    mails: Annotated[int, Meta(description="How many templates come with it.")]
    unseen: Annotated[list[str], Meta(description="Event types that it listens to and that nobody has sent yet.")]
    installed: Annotated[bool, Meta(description="Whether a journey of its name is in force.")]


class GalleryList(msgspec.Struct, kw_only=True):
    """Every journey of the gallery, in its order."""

    entries: list[GallerySummary]


class GalleryNeed(msgspec.Struct, kw_only=True):
    """What it needs of the events of the store."""

    name: Annotated[str, Meta(description="An event type, or a trait such as `traits.renews_at`.")]
    about: str
    seen: Annotated[
        bool | None, Meta(description="Whether somebody has sent it; null: the store is too large to tell, or a trait.")
    ]


@key_fields("section", "name", "state")
class GalleryPiece(msgspec.Struct, kw_only=True):
    """One definition of it."""

    section: str
    name: str
    state: Annotated[
        Literal["new", "same", "taken"],
        Meta(description="`taken`: something else has the name; `same`: what it says is in force already."),
    ]
    place: Annotated[str, Meta(description="Where the one in force is declared; empty: by hand, or nowhere.")]
    text: Annotated[str, Meta(description="What stands under its name in a file.")]


class GalleryView(msgspec.Struct, kw_only=True):
    """A journey of the gallery with all that comes with it."""

    name: str
    title: str
    description: str
    journey: Annotated[str, Meta(description="What the journey will be called.")]
    entered_by: Annotated[str, Meta(description="What lets people enter it.")]
    steps: Annotated[list[StepCount], Meta(description="Its steps, and where each leads to.")]
    drawing: Annotated[str, Meta(description="A tree of its steps, for terminals.")]
    needs: list[GalleryNeed]
    pieces: list[GalleryPiece]
    senders: Annotated[list[str], Meta(description="The declared senders; `sender` may be left out where it is one.")]
    suffix: Annotated[str, Meta(description="One with which no name is taken; empty: none is.")]


class GalleryMail(msgspec.Struct, kw_only=True):
    """A mail of it, filled in for somebody made up."""

    template: str
    description: str
    subject: str
    html: str
    text: str


class GalleryMails(msgspec.Struct, kw_only=True):
    """Its mails, by name of the template."""

    mails: list[GalleryMail]


class Installed(msgspec.Struct, kw_only=True):
    """What is in force from now on."""

    journey: str
    paused: Annotated[bool, Meta(description="Whether nobody enters it before somebody resumes it.")]
    pieces: Annotated[list[str], Meta(description="What came with it: the section and the name of each.")]
    version: Annotated[int, Meta(description="Of what is made by hand; going back to the one before takes it away.")]
    job: Annotated[JobView, Meta(description="Recalculates everyone.")]


@operation("GET /v1/gallery", GALLERY_GROUP)
def list_(context: Context, params: NoParams) -> GalleryList:
    """List the journeys that can be installed whole."""
    seen = seen_types(context.engine, context.workspace)
    return GalleryList(
        entries=[
            GallerySummary(
                name=entry.name,
                title=entry.title,
                description=entry.description,
                mails=sum(piece.section == TEMPLATES for piece in pieces_of(entry)),
                unseen=[need.name for need in _needs(entry, seen.names, is_all=seen.is_complete) if need.seen is False],
                installed=any(
                    _written(context, piece) is not None for piece in pieces_of(entry) if piece.section == JOURNEYS
                ),
            )
            for entry in entries()
        ]
    )


@operation("GET /v1/gallery/{name}", GALLERY_GROUP, is_long=always, example=GalleryParams(name="welcome"))
def show(context: Context, params: GalleryParams) -> GalleryView:
    """Show a journey of the gallery: what comes with it, what it needs, and which of its names are taken."""
    entry = entry_named(params.name)
    free = _free_suffix(context, entry)
    pieces = pieces_of(entry, params.suffix)
    made = _made(context, GalleryMailsParams(name=params.name, suffix=params.suffix or free))
    (journey,) = (it for it in read_journeys(made.definitions) or () if it.name == _journey(made.pieces))
    seen = seen_types(context.engine, context.workspace)
    return GalleryView(
        name=entry.name,
        title=entry.title,
        description=entry.description,
        journey=_journey(pieces),
        entered_by=entered_by(journey.trigger),
        steps=steps_of(journey, {}),
        drawing=tree(journey, {}),
        needs=[*_needs(entry, seen.names, is_all=seen.is_complete)],
        pieces=[_piece(context, piece) for piece in pieces],
        senders=_senders(context),
        suffix=free,
    )


@operation(
    "GET /v1/gallery/{name}/mails",
    GALLERY_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    example=GalleryMailsParams(name="welcome"),
)
def mails(context: Context, params: GalleryMailsParams) -> GalleryMails:
    """Show the mails of a journey of the gallery, filled in for somebody made up."""
    made = _made(context, params)
    operation = next(operation for operation in made.catalogue.operations if operation.name == "mail_preview")
    shown = []
    for piece in made.pieces:
        if piece.section == TEMPLATES:
            mail = operation.run(context, operation.params(template=piece.name))
            about = value_of(piece.text).get("description", "")
            shown.append(
                GalleryMail(
                    template=piece.name, description=about, subject=mail.subject, html=mail.html, text=mail.text
                )
            )
    return GalleryMails(mails=shown)


@operation(
    "POST /v1/gallery/{name}/preview",
    GALLERY_GROUP,
    is_long=always,
    shown_on=frozenset({"http", "python"}),
    relies_on=("people",),
    example=GalleryPreviewParams(name="welcome"),
    audited=False,
)
def preview(context: Context, params: GalleryPreviewParams) -> JourneyPreview:
    """Try a journey of the gallery, with all that comes with it, on as many people as the time allows."""
    made = _made(context, params)
    sections = frozenset(piece.section.partition(".")[0] for piece in made.pieces) - {JOURNEYS}
    return tried(context, made.catalogue, _journey(made.pieces), params.days, params.seconds, sections)


@operation(
    "POST /v1/gallery/{name}/install",
    GALLERY_GROUP,
    done=("Installed {name} of the gallery",),
    is_long=always,
    scope="admin",
    example=InstallParams(name="welcome", sender="shop", paused=True),
)
def install(context: Context, params: InstallParams) -> Installed:
    """Install a journey of the gallery: it becomes part of what is made by hand, with its mails and segments."""
    entry, made = entry_named(params.name), _made(context, params)
    journey = _journey(made.pieces)
    writes: Sequence[Put | Delete] = ()
    if params.paused:
        pause = Put(Key(JOURNEYS, context.workspace, f"{PAUSED}{journey}"), str(context.now).encode())
        writes = context.engine.shared.writes(context.workspace, JOURNEYS, [pause])
    note = params.note or f"{entry.title}, of the gallery"
    done = by_hand.put_all(context, made.new, note, writes)
    return Installed(
        journey=journey,
        paused=params.paused,
        pieces=[f"{piece.section} {piece.name}" for piece in made.new],
        version=done.number,
        job=done.job,
    )


class _Made(NamedTuple):
    """What would be installed, and everything in force with it."""

    pieces: list[Piece]
    new: list[Piece]
    """Those of them that do not say what is in force already."""
    definitions: Definitions
    catalogue: Catalogue


def _made(context: Context, params: GalleryMailsParams) -> _Made:
    """Raises `Conflict` where a name is taken, and `InvalidDefinition` for what does not go with what is in force."""
    entry, definitions = entry_named(params.name), in_force(context.engine.catalogue)
    pieces = [*_with_sender(context, params, pieces_of(entry, params.suffix))]
    shown = [_piece(context, piece) for piece in pieces]
    for piece in shown:
        if piece.state == "taken":
            there = f"declared at {piece.place}" if piece.place else "made by hand"
            suffix = _free_suffix(context, entry)
            raise Conflict(
                f"{piece.section} {piece.name!r} is {there} already, and says something else",
                hint=f"Give the suffix {suffix!r}, which is added to each name, or take away what is there.",
                param="suffix",
            )
    new = [piece for piece, view in zip(pieces, shown, strict=True) if view.state == "new"]
    before = dict(definitions.texts).get(BY_HAND, "")
    together = Definitions(
        {**dict(definitions.texts), BY_HAND: by_hand.with_pieces(context.engine.catalogue, before, new)}.items()
    )
    for aside in ASIDE:
        together.section(aside)
    return _Made(pieces, new, together, context.engine.catalogue.variant(together))


def _with_sender(context: Context, params: GalleryMailsParams, pieces: list[Piece]) -> Iterator[Piece]:
    """The pieces, with the sender of each template, and the sender itself where it is new."""
    declared, sender = _senders(context), params.sender
    is_installed = isinstance(params, InstallParams)
    if sender and "@" not in sender and sender not in declared:
        raise InvalidValue(f"there is no sender {sender[:64]!r}; {suggestion(sender, declared)}", param="sender")
    if "@" in sender and declared:
        raise InvalidValue(f"there are senders already; name one of {', '.join(declared)}", param="sender")
    if not sender and not declared and is_installed:
        hint = "Give the address that its mails are from, such as hello@shop.example."
        raise InvalidValue("no sender is declared yet", hint=hint, param="sender")
    if not sender and len(declared) > 1 and is_installed:
        raise InvalidValue(f"there are several senders; name one of {', '.join(declared)}", param="sender")
    if not declared:
        yield Piece(SENDERS, NEW_SENDER, f"from: {sender or EXAMPLE_ADDRESS}\n")
    name = NEW_SENDER if not declared else sender or declared[0]
    for piece in pieces:
        if piece.section == TEMPLATES:
            text = spliced(piece.text, ("sender",), f"{name}\n")
            assert text is not None, "a template of the gallery is written line by line"
            yield piece._replace(text=text)
        else:
            yield piece


def _senders(context: Context) -> list[str]:
    definitions = in_force(context.engine.catalogue)
    return sorted(definitions.names_in("mail", "senders") or ())


def _journey(pieces: list[Piece]) -> str:
    return next(piece.name for piece in pieces if piece.section == JOURNEYS)


def _needs(entry: Entry, seen: frozenset[str], *, is_all: bool) -> Iterator[GalleryNeed]:
    for name, about in entry.needs.items():
        is_known = name in seen or None if name.startswith("traits.") or not is_all else name in seen
        yield GalleryNeed(name=name, about=about, seen=is_known)


def _written(context: Context, piece: Piece) -> str | None:
    catalogue = context.engine.catalogue
    written = in_force(catalogue).written(keys_of(catalogue, piece.section, piece.name))
    return None if written is None else written.text


def _piece(context: Context, piece: Piece) -> GalleryPiece:
    there = _written(context, piece)
    is_same = there is not None and _says(there) == _says(piece.text)
    return GalleryPiece(
        section=piece.section,
        name=piece.name,
        state="new" if there is None else "same" if is_same else "taken",
        place=by_hand.in_file(context, piece.section, piece.name),
        text=piece.text,
    )


def _says(text: str) -> object:
    """What a definition says, whoever sends it."""
    value = value_of(text)
    return {key: inner for key, inner in value.items() if key != "sender"} if isinstance(value, dict) else value


def _free_suffix(context: Context, entry: Entry) -> str:
    """The first suffix with which no name is taken; empty where none is taken as it is."""

    def is_taken(suffix: str) -> bool:
        return any(_piece(context, piece).state == "taken" for piece in pieces_of(entry, suffix))

    suffixes = ("", *(f"_{number}" for number in range(2, 100)))
    return next((suffix for suffix in suffixes if not is_taken(suffix)), "")
