"""Bounces in prose: what servers send that know nothing of RFC 3464."""

from __future__ import annotations

import re

from threadline.wire.mime.delivery_status import RECIPIENTS_MAX, Action, Recipient, address_of, code_of

LINES_MAX = 400

_MACHINE = re.compile(
    r"(?i)mailer-?daemon|mail[._ ]delivery|postmaster|mdaemon|delivery (?:sub)?system|mail administrator|"
    r"system administrator|mail_?service\b|anti_?virus|^ndr@|^imss@"
)
_SUBJECT = re.compile(
    r"(?i)^(?:\[[^\]]{1,40}\] ?)?(?:undeliver|returned mail|mail (?:could not be |not |un)delivered|"
    r"(?:permanent |mail |message |email )?delivery (?:failure|failed|status notification)|mail delivery failed|"
    r"mail failed|non-?delivery|failure notice|failed mail|mail error|delivery report)|\(delivery failed\)$"
)
_DELAY = re.compile(
    r"(?i)not yet been delivered|warning message only|has been (?:delayed|postponed)|"
    r"delivery attempts will continue|(?:will be|being) retried|just a warning|delivery status notification \(delay\)"
)
_FAILURE = re.compile(
    r"(?i)(?:could|can|was|were|wasn't|weren't|has|did|been|be) ?(?:not|NOT)? ?(?:be |been |"
    r"able to )?(?:deliver|reach)|"
    r"undeliver|unable to deliver|not delivered|permanent (?:fatal )?error|del[ie]very .{0,60}abort|"
    r"failed (?:permanently|recipient|addresses)|"
    r"delivery .{0,60}(?:fail|abort)|no such user|user unknown|no valid recipients|mailbox is full|"
    r"encountered (?:an error|delivery problems)|automatically rejected|invalid final delivery|unknown user|"
    r"(?m:^<[^<>\s]{1,64}@[^<>\s]{1,255}>:\s*$)|no mailbox here|delivery failed|was rejected|error was detected|"
    r"failed because|did(?: not|n't) (?:exactly )?(?:match|receive|reach)"
)
_RECIPIENTS = re.compile(
    r"(?i)(?:following|these|affected|original) (?:\w+ ){0,2}(?:recipient|address|user|local address|destination)|"
    r"(?:address|recipient|user|destination)s?(?:\(es\)|\(s\))? (?:failed|did not)|addresses? had|"
    r"(?:addressed|deliver\w*(?: \w+){0,5}) to\b|failed (?:recipient|address)|undeliverable (?:address|to)|"
    r"intended recipient:|error-for:|unknown user:|userid:|one or more destinations|mailbox is full:|"
    r"the postfix .{0,40}program|recipient:|attempts:|following reason:|quota violation for|verify the address|"
    r"check your send|was addressed|not deliver\w*|local address|your message to|local mailbox|address to which"
)
_ORIGINAL = re.compile(
    r"(?i)^[\s>|*=-]*(?:(?:this|below|included|here)\b.{0,40}\b(?:copy|header|part) of|original message|message log|"
    r"(?:the )?(?:header|first \d+ lines).{0,40}(?:original|follow)|returned (?:mail|message)|unsent message|"
    r"start of returned|message (?:header|body|text|headers)s? (?:follow|suppressed)|forwarded message|"
    r"mensaje original|"
    r"(?:below|anhang|a copy of the original)|message headers follow|technical details|transcript of session|"
    r"session transcript|your message reads|attachment is a copy|a summary of the undelivered|locator information|"
    r"for assistance|the following locator)|^(?:received|return-path|message-id|x-[a-z-]+): |"
    r"the following locator information"
)
_COPY = re.compile(r"(?i)^[\s>|*=-]*header of the|^(?:received|return-path|message-id): ")
"""Begins what is surely the original message, whether an address was named before or not."""
_OTHERS = re.compile(
    r"(?i)contact <?|^\s*(?:from|reply-to|sender|subject|message-id|de|sent by|cc):|system contact|support@|questions|"
    r"mail from:"
)
_POSTMASTER = re.compile(r"(?i)^(?:postmaster|mailer-daemon|mdaemon|abuse|support|helpdesk|noreply|no-reply)@")
_CANDIDATE = re.compile(r"[^\s<>()\[\]\"',;:|]{1,64}@[A-Za-z0-9\x80-\U0010ffff.-]{3,255}")
_BARE = re.compile(r"^\s+([A-Za-z0-9._-]{1,64})(?:\s{2,}|\s*$)")
_BARE_AFTER = re.compile(r"(?i)delivered to the following:|could not be delivered because they are not accepting")
_DIRECTORIES = {"yale.edu": ("cs.yale.edu", "yale.edu")}
"""Directory servers that name people without a domain, and the domains that they answer for."""


def is_machine(sender: str) -> bool:
    """Whether a From or Return-Path names a mail server rather than a person."""
    return sender.strip() in ("<>", "") or sender.strip().endswith(" <>") or _MACHINE.search(sender) is not None


def bounced(sender: str, return_path: str | None, subject: str, text: str, mine: frozenset[str]) -> list[Recipient]:
    """The recipients whom a report in prose names; none if it is no such report.

    ``mine`` are the addresses the report went to, in lower case: they are named in it as those of the sender.
    """
    from_machine = is_machine(sender) or (return_path is not None and is_machine(return_path))
    if not from_machine and _SUBJECT.search(subject) is None:
        return []
    lines = _report(text)
    report = "\n".join(lines)
    delayed = _DELAY.search(f"{subject}\n{report}") is not None
    if not delayed and _FAILURE.search(f"{subject}\n{report}") is None:
        return []
    addresses = _listed_bare(lines, sender) or _listed(lines, mine)
    action: Action = "delayed" if delayed else "failed"
    return [
        Recipient(address, action, "4.0.0" if delayed else code_of(detail), detail[:500].strip())
        for address, detail in list(addresses.items())[:RECIPIENTS_MAX]
    ]


def _report(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines()[:LINES_MAX]:
        if lines and _COPY.search(line[:200]):
            break
        if lines and _ORIGINAL.search(line[:200]):
            if any(_CANDIDATE.search(copied) for copied in lines):
                break
            continue
        lines.append(line[:1_000])
    return lines


def _listed(lines: list[str], mine: frozenset[str]) -> dict[str, str]:
    """Address -> what is said about it. Those after "the following recipients", or all where nothing like that is."""
    starts = [number for number, line in enumerate(lines) if _RECIPIENTS.search(line)]
    addresses = _addresses(lines[starts[0] :], mine) if starts else {}
    return addresses or _addresses(lines, mine)


def _addresses(lines: list[str], mine: frozenset[str]) -> dict[str, str]:
    addresses: dict[str, str] = {}
    names: dict[str, str] = {}
    last = ""
    for line in lines:
        others = _OTHERS.search(line) is not None
        for match in _CANDIDATE.finditer(line):
            address = address_of(match[0].rpartition("=")[2] if "SMTP=" in match[0] else match[0])
            if address and not others and address.lower() not in mine and not _POSTMASTER.match(address):
                last = names.setdefault(address.lower(), address)
                addresses.setdefault(last, "")
        if last and len(addresses[last]) < 500:
            addresses[last] += f" {line.strip()}"
    return addresses


def _listed_bare(lines: list[str], sender: str) -> dict[str, str]:
    """People named without a domain by a server that knows only its own."""
    host = address_of(sender).rpartition("@")[2].lower()
    start = next((number for number, line in enumerate(lines) if _BARE_AFTER.search(line)), -1)
    if start < 0 or not host:
        return {}
    domains = next((names for domain, names in _DIRECTORIES.items() if host.endswith(f".{domain}")), (host,))
    addresses: dict[str, str] = {}
    for line in lines[start + 1 :]:
        if (match := _BARE.match(line)) is not None:
            addresses.update({f"{match[1]}@{domain}": line.strip() for domain in domains})
        elif line.strip():
            break
    return addresses
