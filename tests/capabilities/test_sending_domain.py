"""What DNS says of a sender's domain, in words: SPF, DKIM and DMARC, and that it could not be asked."""

from __future__ import annotations

from typing import Any

import pytest

from threadline.capabilities.reach.mail.definition import Dkim, Sender
from threadline.capabilities.reach.mail.sending_domain import asking, checks_of
from threadline.kernel.errors import Unavailable

GOOD = {
    "mail.shop.example": ["v=spf1 include:relay.example ~all"],
    "s1._domainkey.mail.shop.example": ["v=DKIM1; k=rsa; p=MIIB"],
    "_dmarc.shop.example": ["v=DMARC1; p=none; sp=reject"],
}


def _found(records: dict[str, list[str]], *, signs: bool = True) -> dict[str, tuple[str, str]]:
    dkim = Dkim(selector="s1", key_file="key.pem") if signs else None
    sender = Sender(id="shop", address="hello@mail.shop.example", dkim=dkim)
    return {
        check.kind: (check.status, check.says)
        for check in checks_of(sender, asking(lambda name: records.get(name, [])))
    }


def test_a_domain_with_all_three_is_ok_and_a_policy_above_it_counts() -> None:
    assert {kind: status for kind, (status, _) in _found(GOOD).items()} == dict.fromkeys(("SPF", "DKIM", "DMARC"), "ok")


@pytest.mark.parametrize(
    ("changes", "kind", "status", "said"),
    [
        ({"mail.shop.example": []}, "SPF", "missing", "v=spf1"),
        ({"mail.shop.example": ["v=spf10 -all"]}, "SPF", "missing", "v=spf1"),
        ({"mail.shop.example": ["v=spf1 -all", "v=spf1 ~all"]}, "SPF", "weak", "join them"),
        ({"mail.shop.example": ["v=spf1 +all"]}, "SPF", "weak", "Any server"),
        ({"mail.shop.example": ["v=spf1 redirect=other.example"]}, "SPF", "ok", "names the servers"),
        ({"s1._domainkey.mail.shop.example": []}, "DKIM", "missing", "key.pem"),
        ({"s1._domainkey.mail.shop.example": ["v=DKIM1; p="]}, "DKIM", "missing", "revoked"),
        ({"_dmarc.shop.example": []}, "DMARC", "missing", "_dmarc.mail.shop.example"),
        ({"_dmarc.shop.example": ["v=DMARC1; p=none"]}, "DMARC", "weak", "only reports"),
        ({"_dmarc.mail.shop.example": ["v=DMARC1; p=quarantine; sp=none"]}, "DMARC", "ok", "put aside"),
    ],
)
def test_what_is_missing_or_weak_says_what_to_do(changes: dict[str, Any], kind: str, status: str, said: str) -> None:
    found = _found({**GOOD, **changes})
    assert found[kind][0] == status
    assert said in found[kind][1]
    assert all(other == "ok" for name, (other, _) in found.items() if name != kind)


def test_without_a_key_of_ours_the_provider_signs_and_that_is_not_known() -> None:
    status, says = _found(GOOD, signs=False)["DKIM"]
    assert status == "unknown"
    assert "provider signs" in says


def test_where_dns_cannot_be_asked_all_are_unknown_after_one_question() -> None:
    asked: list[str] = []

    def away(name: str) -> list[str]:
        asked.append(name)
        raise Unavailable("no way out")

    checks = [*checks_of(Sender(id="shop", address="hello@shop.example"), asking(away))]
    assert {check.status for check in checks} == {"unknown"}
    assert "DNS cannot be asked" in checks[0].says
    assert len(asked) == 1
