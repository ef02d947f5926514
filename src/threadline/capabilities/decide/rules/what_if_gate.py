"""The gate before an activation: no version of a rule counts before it was tried on history, if that is asked for."""

from __future__ import annotations

from threadline.capabilities.decide.rules.what_if_results import newest
from threadline.kernel.counted import counted
from threadline.kernel.errors import Conflict
from threadline.kernel.operation import Context

__all__ = ["newest", "refuse_untried"]

HINT = "Try it with `what_if_run` on the history that matters, with `save`, then activate it."


def refuse_untried(
    context: Context,
    rule: str,
    version: int,
    hash: str,
    active: int,
    changed_max: float | None,
    seen: str = "",
) -> None:
    """Raise `Conflict` unless a saved what-if of exactly this version is within bounds.

    It must be of the whole workspace, against the version that is ``active`` now, have errors nowhere, and of its
    answers no larger share than ``changed_max`` may be others; None: as many as there are. ``seen``: the what-if
    that whoever activates has looked at, which must be the newest.
    """
    name = f"version {version} of rule {rule!r}"
    what_if = newest(context, rule, version)
    if what_if is None or what_if.about.hash != hash:
        raise Conflict(f"{name} cannot be activated: no what-if of it was saved", hint=HINT)
    about = what_if.about
    problem = ""
    if not about.whole:
        problem = "looked at a part of the people or of the event types only"
    elif about.against != active:
        problem = f"was against {_version(about.against)}, and {_version(active)} is active now"
    elif about.errors:
        problem = f"had {counted(about.errors, 'error')}"
    elif seen and seen != what_if.id:
        problem = f"is newer than {seen[:64]}, which was looked at"
    elif changed_max is None:
        return
    elif not about.asked:
        problem = "asked it of no event, and so says nothing"
    elif about.changed > changed_max * about.asked:
        share = about.changed / about.asked
        problem = f"changed {share:.2%} of {counted(about.asked, 'answer')}, and {changed_max:.2%} may be changed"
    if problem:
        raise Conflict(f"{name} cannot be activated: what-if {what_if.id} {problem}", hint=HINT)


def _version(version: int) -> str:
    return f"version {version}" if version else "no version"
