"""What DNS says of a sender's domain: whether recipients can tell that mail is really from it (SPF, DKIM, DMARC)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from threadline.capabilities.reach.mail.definition import Sender
from threadline.kernel.disclosure import SENTENCE, not_personal
from threadline.kernel.errors import Unavailable
from threadline.kernel.key_fields import key_fields

Texts = Callable[[str], Sequence[str]]
"""Name -> its texts in DNS. Raises `Unavailable`."""
Status = Literal["ok", "weak", "missing", "unknown"]
_TAG = re.compile(r"\s*([A-Za-z]+)\s*=\s*([^;]*)")
_NOT_ASKED = "DNS cannot be asked from here, so this is not known"


@key_fields("kind", "status", "says")
@not_personal
class DomainCheck(msgspec.Struct, kw_only=True):
    """One of the three records."""

    kind: Literal["SPF", "DKIM", "DMARC"]
    status: Annotated[
        Status,
        Meta(description="`ok`; `weak`: there, and it stops nobody; `missing`; `unknown`: it could not be asked."),
    ]
    name: Annotated[str, Meta(description="The name that was asked for; empty: none is known.")]
    record: Annotated[str, Meta(description="What DNS has there.")] = ""
    says: Annotated[str, Meta(description="What that means, and what to do."), SENTENCE]


Ask = Callable[[str], Sequence[str] | None]
"""Name -> its texts in DNS; None where it cannot be asked."""


def asking(texts: Texts) -> Ask:
    """Asks DNS; after a question that nobody answers no other is asked."""
    unanswered: list[str] = []

    def ask(name: str) -> Sequence[str] | None:
        try:
            return None if unanswered else texts(name)
        except Unavailable:
            unanswered.append(name)
            return None

    return ask


def checks_of(sender: Sender, ask: Ask) -> Iterator[DomainCheck]:
    """What DNS says of a sender."""
    yield _spf(_domain(sender.bounces or sender.address), ask)
    yield _dkim(sender, ask)
    yield _dmarc(_domain(sender.address), ask)


def _domain(address: str) -> str:
    return address.rpartition("@")[2].lower()


def _spf(domain: str, ask: Ask) -> DomainCheck:
    answered = ask(domain)
    if answered is None:
        return DomainCheck(kind="SPF", status="unknown", name=domain, says=_NOT_ASKED)
    records = [text for text in answered if re.match(r"v=spf1(\s|$)", text, re.IGNORECASE)]
    if not records:
        says = f"{domain} does not say which servers send its mail; add a TXT record that begins with v=spf1"
        return DomainCheck(kind="SPF", status="missing", name=domain, says=says)
    record = records[0]
    if len(records) > 1:
        says = f"{domain} has {len(records)} records of SPF, which count as none; join them into one"
        return DomainCheck(kind="SPF", status="weak", name=domain, record=record, says=says)
    end = re.search(r"([+?~-]?)all\s*$", record, re.IGNORECASE)
    if re.search(r"redirect=", record, re.IGNORECASE) or (end is not None and end[1] in ("-", "~")):
        says = "It names the servers that send; whether your provider is among them only the provider can say"
        return DomainCheck(kind="SPF", status="ok", name=domain, record=record, says=says)
    says = "Any server may send in its name; let it end with ~all or -all"
    return DomainCheck(kind="SPF", status="weak", name=domain, record=record, says=says)


def _dkim(sender: Sender, ask: Ask) -> DomainCheck:
    if sender.dkim is None:
        says = "The provider signs, with a selector that is not known here; look at what it says of the domain"
        return DomainCheck(kind="DKIM", status="unknown", name="", says=says)
    name = f"{sender.dkim.selector}._domainkey.{sender.dkim.domain or _domain(sender.address)}"
    answered = ask(name)
    if answered is None:
        return DomainCheck(kind="DKIM", status="unknown", name=name, says=_NOT_ASKED)
    keys = [text for text in answered if "p" in _tags(text)]
    if not keys:
        says = f"there is no key at {name}; add the public key of {sender.dkim.key_file} there"
        return DomainCheck(kind="DKIM", status="missing", name=name, says=says)
    if not _tags(keys[0])["p"].strip():
        says = "The key was revoked, so no signature counts; add the public key anew"
        return DomainCheck(kind="DKIM", status="missing", name=name, record=keys[0], says=says)
    return DomainCheck(kind="DKIM", status="ok", name=name, record=keys[0], says="Signatures can be checked")


def _dmarc(domain: str, ask: Ask) -> DomainCheck:
    labels = domain.split(".")
    # A domain without a policy has that of the one above it, down to the last two parts.
    for above in range(max(len(labels) - 1, 1)):
        name = f"_dmarc.{'.'.join(labels[above:])}"
        answered = ask(name)
        if answered is None:
            return DomainCheck(kind="DMARC", status="unknown", name=name, says=_NOT_ASKED)
        records = [text for text in answered if re.match(r"v=DMARC1\s*(;|$)", text)]
        if records:
            tags = _tags(records[0])
            policy = (tags.get("sp") or tags.get("p", "")) if above else tags.get("p", "")
            is_strict = policy.strip().lower() in ("quarantine", "reject")
            says = "Forged mail is put aside" if is_strict else "It only reports; p=quarantine puts forged mail aside"
            status: Status = "ok" if is_strict else "weak"
            return DomainCheck(kind="DMARC", status=status, name=name, record=records[0], says=says)
    says = f"Gmail and Yahoo ask for it from those who send much; add a TXT record v=DMARC1; p=none at _dmarc.{domain}"
    return DomainCheck(kind="DMARC", status="missing", name=f"_dmarc.{domain}", says=says)


def _tags(record: str) -> dict[str, str]:
    return {match[1].lower(): match[2] for part in record.split(";") if (match := _TAG.match(part))}
