"""Pictures of mails: add one, list them with what uses each, delete one that nothing uses."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Annotated

import msgspec
from msgspec import Meta

from threadline.capabilities.foundation.events.forms import Instant, instant
from threadline.capabilities.reach.mail.operations import MAIL_GROUP
from threadline.capabilities.reach.mail.pictures import stored
from threadline.capabilities.reach.mail.pictures.content import kind_of
from threadline.capabilities.reach.mail.pictures.routes import PATH
from threadline.capabilities.reach.mail.pictures.stored import Picture
from threadline.capabilities.reach.mail.templates import Templates
from threadline.kernel.disclosure import not_personal
from threadline.kernel.documents import changed
from threadline.kernel.errors import Conflict, InvalidValue, LimitExceeded
from threadline.kernel.key_fields import key_fields
from threadline.kernel.limits import PICTURE_BYTES_MAX, PICTURES_MAX
from threadline.kernel.operation import Context, NoParams, Operation, Params, shaped_operation


class MailPictureAddParams(Params, kw_only=True):
    """A picture."""

    name: Annotated[str, Meta(description="What it is called in lists.", min_length=1, max_length=200)]
    content: Annotated[str, Meta(description="The file in base64: PNG, JPEG, GIF or WebP.", min_length=1)]


@key_fields("name", "width", "height", "bytes", "used_by", "source")
@not_personal
class MailPicture(msgspec.Struct, kw_only=True):
    """A picture that was uploaded."""

    id: str
    name: str
    source: Annotated[str, Meta(description="How a block `picture` names it.")]
    address: Annotated[str, Meta(description="Its path below the public address of the server.")]
    type: Annotated[str, Meta(description="png, jpg, gif or webp, as its bytes say.")]
    width: Annotated[int, Meta(description="In pixels.")]
    height: Annotated[int, Meta(description="In pixels.")]
    bytes: int
    at: Annotated[Instant, Meta(description="When it was uploaded.")]
    by: str
    used_by: Annotated[list[str], Meta(description="The templates in force that show it.")]


class MailPicturesResult(msgspec.Struct, kw_only=True):
    """The pictures of the workspace, the newest first."""

    pictures: list[MailPicture]
    most: Annotated[int, Meta(description="How many there may be.")]


class MailPictureDeleteParams(Params, kw_only=True):
    """Which picture."""

    id: Annotated[str, Meta(description="Its id, as the list has it.", min_length=1, max_length=64)]


def _shown(templates: Templates, picture: Picture) -> MailPicture:
    return MailPicture(
        id=picture.id,
        name=picture.name,
        source=f"picture:{picture.file}",
        address=PATH.format(file=picture.file),
        type=picture.type,
        width=picture.width,
        height=picture.height,
        bytes=picture.size,
        at=instant(picture.at),
        by=picture.by,
        used_by=_used_by(templates, picture),
    )


def _used_by(templates: Templates, picture: Picture) -> list[str]:
    """The templates in force that show a picture."""
    return sorted(
        compiled.template.name
        for compiled in templates
        if any(picture.file in text for text in compiled.sources.texts.values())
    )


@shaped_operation(
    "POST /v1/mail/pictures",
    MAIL_GROUP,
    scope="admin",
    status=201,
    private=frozenset({"content"}),
    done=("Uploaded the picture {name}",),
    example=MailPictureAddParams(name="logo.gif", content="R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"),
)
def add_picture(templates: Templates, context: Context, params: MailPictureAddParams) -> MailPicture:
    """Add a picture for mails; the same file is the same picture."""
    try:
        content = b64decode(params.content, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidValue("this is no base64", param="content") from None
    if len(content) > PICTURE_BYTES_MAX:
        raise LimitExceeded(
            f"the picture has {len(content):,} bytes; up to {PICTURE_BYTES_MAX:,} are taken",
            hint="Save it smaller: mails are 600 pixels wide, and people load them on the way.",
            param="content",
        )
    ports, workspace = context.engine, context.workspace
    id = stored.id_of(ports, workspace, content)
    made = stored.new_picture(id, params.name, kind_of(content), len(content), context.now, context.source)
    return _shown(templates, stored.add(ports, workspace, made, content))


@shaped_operation("GET /v1/mail/pictures", MAIL_GROUP)
def pictures(templates: Templates, context: Context, params: NoParams) -> MailPicturesResult:
    """List the pictures that mails may show, with the templates that use each."""
    listed = stored.pictures(context.engine.store, context.workspace)
    return MailPicturesResult(pictures=[_shown(templates, picture) for picture in listed], most=PICTURES_MAX)


@shaped_operation(
    "DELETE /v1/mail/pictures/{id}",
    MAIL_GROUP,
    scope="admin",
    done=("Deleted a picture of mails",),
    example=MailPictureDeleteParams(id="0123456789abcdef0123456789abcdef"),
)
def delete_picture(templates: Templates, context: Context, params: MailPictureDeleteParams) -> MailPicture:
    """Delete a picture that no template in force shows; mails that were sent with it show it no more."""

    def attempt() -> MailPicture | None:
        there = stored.find(context.engine.store, context.workspace, params.id)
        shown = _shown(templates, there.document)
        if shown.used_by:
            users = ", ".join(shown.used_by)
            raise Conflict(
                f"the picture {there.document.name!r} is still used by {users}",
                hint="Take it out of these templates first.",
            )
        return shown if stored.delete(context.engine.store, context.workspace, there) else None

    return changed("this picture", attempt)


def operations(templates: Templates) -> list[Operation]:
    """The operations on pictures."""
    return [add_picture(templates), pictures(templates), delete_picture(templates)]
