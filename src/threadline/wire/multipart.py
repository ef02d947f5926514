"""A form with a file as browsers send it (RFC 7578): its fields, and the file with its name."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from threadline.kernel.errors import InvalidValue

PARTS_MAX = 100
_BOUNDARY = re.compile(r'boundary="?([^";,\s]{1,70})"?', re.ASCII)
_NAME = re.compile(r'[;\s]name="([^"]*)"')
_FILE_NAME = re.compile(r'[;\s]filename="([^"]*)"')


class FileForm(NamedTuple):
    """The fields of a form, and its file."""

    fields: dict[str, str]
    file_name: str
    """Empty: there is no file."""
    content: bytes


def is_multipart(content_type: str) -> bool:
    """Whether a form may have a file."""
    return content_type.lower().startswith("multipart/form-data")


def read_multipart(body: bytes, content_type: str) -> FileForm:
    """The form of a body. Raises `InvalidValue` for what is none."""
    named = _BOUNDARY.search(content_type)
    if named is None or not is_multipart(content_type):
        raise InvalidValue("this is no form with a file")
    mark = b"--" + named[1].encode()
    fields: dict[str, str] = {}
    file_name, content = "", b""
    at = 0 if body.startswith(mark) else body.find(b"\r\n" + mark) + 2
    for _ in range(PARTS_MAX):
        at += len(mark)
        if body.startswith(b"--", at):
            return FileForm(fields, file_name, content)
        begin = body.find(b"\r\n\r\n", at)
        end = body.find(b"\r\n" + mark, begin + 2) if begin >= 0 else -1
        if end < 0 or not body.startswith(b"\r\n", at):
            break
        headers = body[at:begin].decode("utf-8", "replace")
        name, file = _NAME.search(headers), _FILE_NAME.search(headers)
        part = body[begin + 4 : end]
        if file is not None:
            file_name, content = unquote(file[1]), part
        elif name is not None:
            fields[unquote(name[1])] = part.decode("utf-8", "replace")
        at = end + 2
    raise InvalidValue("the form with the file is cut off, or has too many parts")
