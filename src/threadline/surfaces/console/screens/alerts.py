"""Alerts: the list of them, and the form that writes one or changes it, beside who would see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console import alert_form
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.condition_form import missing
from threadline.surfaces.console.editing import shown_conditions
from threadline.surfaces.console.fields import fields_of
from threadline.surfaces.console.listing import action, column, listed
from threadline.surfaces.console.trace import tree_of_conditions

PAGE = 50
COUNT_SECONDS = 1
FORM_PATH = "/alerts/new"


def _load(asking: Asking) -> Mapping[str, Any]:
    page = asking.ask("alerts_list", state=asking.query.get("state"), cursor=asking.query.get("cursor"), limit=PAGE)
    return {
        "list": listed(
            "Alerts",
            page["alerts"],
            [
                column("id", "Alert", "link", path=f"{FORM_PATH}?id="),
                column("title", "Title"),
                column("severity", "Severity", "status"),
                column("state", "State", "status"),
                column("start", "From", "when"),
                column("stop", "Until", "when"),
                column("problem", "Problem"),
            ],
            next_=page["next"],
            actions=[
                action(
                    "alerts_withdraw",
                    "Withdraw",
                    {"id": "id"},
                    when=("state", ("active", "scheduled")),
                    confirm="Withdraw it? Nobody sees it any more.",
                    is_dangerous=True,
                ),
            ],
            empty="No alert was written.",
            note="People see alerts inside your application, through its own API.",
        ),
        "form_path": FORM_PATH,
    }


def _begun(asking: Asking) -> alert_form.AlertForm:
    if "_csrf" in asking.query:
        return alert_form.posted(asking)
    id = asking.query.get("id", "")
    return alert_form.begun(asking.ask("alerts_show", id=id) if id else None)


def _form(asking: Asking) -> Mapping[str, Any]:
    """The form; on a whole page also what stands beside it."""
    form, part = _begun(asking), asking.query.get("part", "")
    beside = _beside(form) if part != "panel" else {}
    if not part and "_csrf" in asking.query:  # as without the script
        beside |= _count(asking)
    fields = {
        field.name: field.shown(asking.engine, asking.session.workspace)
        for field in fields_of(asking.operations["alerts_write"].params)
    }
    return {
        **shown_conditions(asking, form.conditions, alert_form.WHEN, missing(form.conditions)),
        **beside,
        "asked": fields,
        "values": form.values,
        "names_of": form.names,
        "version": form.values.get("expected", "0"),
        "beyond": form.beyond,
        "condition": tree_of_conditions(form.beyond.get(alert_form.WHEN)),
        "focus": form.focus,
    }


def _checked(asking: Asking) -> Mapping[str, Any]:
    return _beside(alert_form.posted(asking))


def _beside(form: alert_form.AlertForm) -> dict[str, Any]:
    """How the alert reads, and whether it is for everybody."""
    problem = missing(form.conditions)
    is_for_all = problem is None and alert_form.audience(form) is None
    return {"values": form.values, "unfinished": str(problem or ""), "is_for_all": is_for_all}


def _count(asking: Asking) -> dict[str, Any]:
    """How many people would see it, and some of them."""
    form = _begun(asking)
    if missing(form.conditions) is not None or (audience := alert_form.audience(form)) is None:
        return {}
    try:
        text = yaml_of({"when": audience})
        return {"count": asking.ask("segments_preview", text=text, seconds=COUNT_SECONDS)}
    except ThreadlineError as error:
        return {"count_problem": str(error)}


SCREENS = (
    Screen(
        name="alerts",
        path="/alerts",
        title="Alerts",
        template="alerts.html",
        load=_load,
        operation="alerts_list",
        summary="Messages that people see inside an application.",
        area="Messages",
        order=39,
    ),
    Screen(
        name="alert_new",
        path=FORM_PATH,
        title="Write an alert",
        template="alert_new.html",
        load=_form,
        operation="alerts_write",
        needs=("alerts_show", "segments_preview"),
        summary="What it says, to whom, and from when until when; nobody sees it before you publish it.",
        in_navigation=False,
        within="alerts",
        is_form=True,
        parts={
            "panel": Part("alert_panel.html", _form),
            "checked": Part("alert_checked.html", _checked),
            "count": Part("alert_count.html", _count),
        },
    ),
)
