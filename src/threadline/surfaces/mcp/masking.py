"""Personal data in answers, masked for callers to whom it was not granted: by name of the field and by form."""

from __future__ import annotations

import re
from typing import Any

_EVERYWHERE = frozenset(
    {
        "email", "emailaddress", "phone", "phonenumber", "mobile", "telephone", "firstname", "lastname", "fullname",
        "givenname", "familyname", "middlename", "surname", "birthday", "birthdate", "dateofbirth", "street", "address",
        "addresses", "postalcode", "postcode", "zip", "zipcode", "ip", "ipaddress", "latitude", "longitude", "avatar",
        "ssn", "passport", "iban", "recipient", "recipients", "html", "raw",
    }
)  # fmt: skip
"""Names of fields, letters and digits only."""
_INSIDE = frozenset(
    {
        "name", "username", "nickname", "city", "location", "message", "messagetext", "text", "body",
        "comment", "note", "notes", "subject", "useragent", "gender", "age",
    }
)  # fmt: skip
"""These too in what people and applications have sent; elsewhere they name definitions."""
_SENT = frozenset(
    {"payload", "traits", "properties", "context", "profile", "attributes", "variables", "value", "values", "mail"}
)
"""Members whose content was sent by others."""
_EMAIL = re.compile(r"[^\s@<>\"',;:()\[\]]+@[^\s@<>\"',;:()\[\]]+\.[^\W\d_]{2,}")
_PHONE = re.compile(r"\+\d[\d ()./-]{6,}\d")
_IP = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|(?<![\w:])(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{1,4}(?![\w:])")
_FORMS = ((_EMAIL, "[email]"), (_PHONE, "[phone]"), (_IP, "[ip]"))
_MASK = "[masked]"
_VALUE_LENGTH_MIN = 3


def masked(value: Any) -> Any:
    """The value with personal data replaced.

    Masked are fields whose name says that they are personal, text of the form of an e-mail address, a phone number or
    an IP address wherever it stands, and what was masked in one field wherever else the answer repeats it. Opaque
    ids stay. A name in the middle of free text that no field of the answer has is not recognised.
    """
    values: set[str] = set()
    fields_masked = _fields(value, False, values)
    repeated = sorted((text for text in values if len(text) >= _VALUE_LENGTH_MIN), key=len, reverse=True)
    again = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in repeated), re.I) if repeated else None
    return _texts(fields_masked, again)


def _fields(value: Any, sent: bool, values: set[str]) -> Any:
    if isinstance(value, dict):
        sent = sent or "html" in value  # a mail: its subject and its text are written to a person, even without HTML
        return {
            name: _leaves(element, values)
            if _is_personal(name, sent)
            else _fields(element, sent or _plain(name) in _SENT, values)
            for name, element in value.items()
        }
    return [_fields(element, sent, values) for element in value] if isinstance(value, list) else value


def _leaves(value: Any, values: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: _leaves(element, values) for name, element in value.items()}
    if isinstance(value, list):
        return [_leaves(element, values) for element in value]
    if value is None or isinstance(value, bool) or value == "":
        return value
    if isinstance(value, str):
        values.update((value, *value.split()))
    return _MASK


def _texts(value: Any, repeated: re.Pattern[str] | None) -> Any:
    if isinstance(value, dict):
        return {_text(name, None): _texts(element, repeated) for name, element in value.items()}
    if isinstance(value, list):
        return [_texts(element, repeated) for element in value]
    return _text(value, repeated) if isinstance(value, str) else value


def _text(text: str, repeated: re.Pattern[str] | None) -> str:
    for form, mask in _FORMS:
        text = form.sub(mask, text)
    return repeated.sub(_MASK, text) if repeated is not None else text


def _is_personal(name: str, sent: bool) -> bool:
    plain = _plain(name)
    return plain in _EVERYWHERE or (sent and plain in _INSIDE)


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
