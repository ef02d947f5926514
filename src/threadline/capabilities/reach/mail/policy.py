"""The policy ``mail``: a request for one mail becomes its effect."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.capabilities.reach.mail.definition import KIND, SHARED
from threadline.capabilities.reach.mail.events import MAIL_REQUESTED
from threadline.capabilities.reach.mail.order import mail_effect
from threadline.capabilities.reach.mail.templates import Templates
from threadline.kernel.event import Recorded
from threadline.kernel.policy import Policy, PolicyView, Read, Shared, Wish

NAME = "mail"
REQUEST = "request"
"""The key of the effect of a request: there is one for each."""
TEXTS, FLAGS = ("sender", "topic", "event", "subject", "address", "language"), ("transactional", "test")
"""What a request may say of its mail beside template and variables."""


def mail_policy(templates: Templates) -> Policy:
    """The policy, and the versions of templates, which the engine keeps for it."""

    def react(recorded: Recorded, known: PolicyView) -> Sequence[Wish]:
        event = recorded.event
        properties = event.properties
        template, variables = properties.get("template"), properties.get("variables", {})
        if type(template) is not str or type(variables) is not dict:
            return ()
        about = {name: properties[name] for name in TEXTS if type(properties.get(name)) is str}
        about |= {name: properties[name] for name in FLAGS if type(properties.get(name)) is bool}
        return (mail_effect(REQUEST, template, variables, recorded.id, **about),)

    return Policy(
        name=NAME,
        handles=frozenset({MAIL_REQUESTED}),
        react=react,
        emits=frozenset(),
        sends=frozenset({KIND}),
        reads=tuple(_reads(templates)),
        shared=Shared(SHARED, lambda items, previous: None, lambda value, type: True, templates.declared),
    )


def _reads(templates: Templates) -> list[Read]:
    return [
        Read("features", (name,), f"{template.template.place}: template {template.template.name!r}")
        for template in templates
        for name in sorted(template.read_below("features"))
        if name
    ]
