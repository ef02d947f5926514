"""Editors: a definition is checked while it is written, and what it would do to people is shown beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from threadline.capabilities.decide.rules.declared import in_no_set
from threadline.capabilities.foundation.conditions import plain
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.conditions_yaml import tree_in
from threadline.surfaces.console.editing import YAML, edited
from threadline.surfaces.console.event_types import suggested
from threadline.surfaces.console.trace import tree_of_conditions

PREVIEW_SECONDS = 1
LINES_MIN, LINES_MAX = 14, 400
SEGMENT = "when:\n  all:\n    - {field: features.monetary_total, greater_than: 100}\n"
FEATURE = "aggregate: count\nevents: purchase_completed\nwindow: 30d\n"
LEADERBOARD = "score: features.monetary_total\n"
TEMPLATE = "TEMPLATE"
"""Stands for a mail template that there is in the text that somebody begins with."""
JOURNEY = f"trigger: {{event: signed_up}}\nsteps:\n  - wait: 1d\n  - send: {TEMPLATE}\n"
RULE = """conditions:
  all:
    - {field: event.properties.total, greater_than: 100}
actions: []
"""
FILE = "segments:\n  good_customers:\n    when: {field: features.monetary_total, greater_than: 100}\n"


class Kind(NamedTuple):
    """What an editor is for."""

    section: str
    """Empty: a file with any sections."""
    begin: str
    """The text that somebody begins with."""
    preview: str = ""
    """The operation that shows what it would do."""
    name: str = "name"
    """The field of its name."""
    text: str = "text"
    """The field of its text."""
    key: str = ""
    """The key of its conditions, for which there is a form."""
    write: str = ""
    """The operation that puts it in force, or makes a draft of it; empty: it goes into a definition file."""


KINDS = {
    "segments": Kind("segments", SEGMENT, "segments_preview", key="when"),
    "features": Kind("features", FEATURE, "features_preview"),
    "rules": Kind("rules", RULE, name="id", text="rule:yaml", key="conditions", write="rules_write"),
    "journeys": Kind("journeys", JOURNEY),
    "leaderboards": Kind("leaderboards", LEADERBOARD),
    "": Kind("", FILE),
}


def _in_force(asking: Asking, section: str, name: str) -> str:
    """The definition of this name as it is written; one that is written in a line in several, which are easier to
    change."""
    if section == "rules":
        rule = asking.ask_or(None, "rules_show", id=name, version=asking.query.get("version"))
        return "" if rule is None else yaml_of(rule_text(rule["content"]), is_compact=True)
    text: str = asking.ask_or({"text": ""}, "definitions_show", section=section, name=name)["text"]
    return yaml_of(value_of(text), is_compact=True) if text.startswith("{") and "#" not in text else text


def proposals(asking: Asking, section: str) -> list[dict[str, Any]]:
    """What is proposed of a section, with the conditions in words where they have some."""
    listed = asking.ask_or({"proposals": []}, "definitions_proposals")["proposals"]
    return [
        {**proposal, "tree": _tree_of_text(proposal["text"])} for proposal in listed if proposal["section"] == section
    ]


def _tree_of_text(text: str) -> dict[str, Any] | None:
    tree = tree_in(text, "when")
    return None if isinstance(tree, str) else tree_of_conditions(plain(tree))


def _begun(asking: Asking, kind: Kind, name: str) -> str:
    """What somebody goes on with: what is proposed, or in force."""
    if asking.query.get("proposal"):
        texts = (proposal["text"] for proposal in proposals(asking, kind.section) if proposal["name"] == name)
        return next(texts, "")
    return _in_force(asking, kind.section, name) if kind.section and name else ""


def _beginning(asking: Asking, kind: Kind) -> str:
    """The text that somebody begins with who writes something new."""
    if TEMPLATE not in kind.begin:
        return kind.begin
    calls = len(asking.calls)
    templates = asking.ask_or({"templates": []}, "mail_templates")["templates"]
    del asking.calls[calls:]  # it is an example; what the page shows is what is written
    return kind.begin.replace(TEMPLATE, next((template["name"] for template in templates), TEMPLATE))


def rule_text(content: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody writes of a rule: all but what Threadline adds, and what is empty."""
    return {
        name: value for name, value in content.items() if name not in ("id", "version") and value not in ("", 0, [])
    }


WITHOUT_FORM = ("checked", "preview")
"""Parts of the editor that stand beside its form."""


def _editor(kind: Kind, part: str = "") -> Callable[[Asking], Mapping[str, Any]]:
    """What a page of the editor shows, or a part of it. A preview takes its time, so that it is a part of its own;
    only a page that is asked for with a form, as without the script, waits for it."""

    def load(asking: Asking) -> Mapping[str, Any]:
        name, posted = asking.query.get(kind.name, ""), "_csrf" in asking.query
        text = asking.query.get(kind.text, "")
        if not (text or posted):
            text = _begun(asking, kind, name) or _beginning(asking, kind)
        draft = edited(asking, kind.key, text.replace("\r\n", "\n"))
        needs_check = not draft.unfinished and (part != "panel" or draft.view == YAML)
        checked = _checked(asking, kind, name, draft.text) if needs_check else {"check": None}
        if checked["check"] and checked["check"]["valid"] and (part == "preview" or (posted and not part)):
            checked |= _preview(asking, kind, name, draft.text)
        lines = draft.text.count("\n") + 1
        written = draft.beside_the_form() if part in WITHOUT_FORM else draft.shown(asking, kind.key)
        if kind.section == "rules" and not part:
            written = {**written, **_runs(asking, name)}
        return {
            **written,
            "kind": kind._asdict(),
            "name": name,
            "rows": min(max(lines + 1, LINES_MIN), LINES_MAX),
            "gutter": _gutter(lines, checked["check"]),
            **checked,
        }

    return load


def _checked(asking: Asking, kind: Kind, name: str, text: str) -> dict[str, Any]:
    if not text.strip():
        return {"check": None}
    given = {"section": kind.section, "name": name or _unnamed(kind)} if kind.section else {}
    check = asking.ask("definitions_check", text=text, **given)
    if kind.section == "rules":
        check = _without_set_warning(asking, check, given["name"])
    return {"check": check, "file": _in_a_file(kind, name, text)}


EVENTS_ASKED = 3
"""Event types for which the form of a rule has fields."""


def _without_set_warning(asking: Asking, check: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A check without the warning that no set names the rule, where the form says when it runs or a set names it."""
    unasked = in_no_set(name)
    warnings = [warning for warning in check["warnings"] if f"{warning['message']}; {warning['hint']}" != unasked]
    is_warned = len(warnings) < len(check["warnings"])
    runs = any(value for field, value in asking.query.items() if field.startswith("events."))
    return {**check, "warnings": warnings if is_warned and (runs or _sets_of(asking, name)) else check["warnings"]}


def _sets_of(asking: Asking, name: str) -> list[dict[str, Any]]:
    """The rule sets that name a rule, each with all the rules it names. The page does not show this question."""
    calls = len(asking.calls)
    sets = asking.ask_or({}, "rule_sets_list").get("rule_sets", [])
    del asking.calls[calls:]
    named = [{**listed, "rules": [*listed["rules"], *listed["absent"]]} for listed in sets]
    return [rule_set for rule_set in named if name in rule_set["rules"]]


def _runs(asking: Asking, name: str) -> dict[str, Any]:
    """When a rule runs: the sets that name it, or the event types of its own set, which the form may change."""
    sets = _sets_of(asking, name)
    own = [
        rule_set
        for rule_set in sets
        if (rule_set["name"], rule_set["rules"], rule_set["declared"]) == (name, [name], False)
    ]
    events = own[0]["events"] if own else []
    calls = len(asking.calls)
    types = suggested(asking.ask_or({"event_types": []}, "catalogue")["event_types"])
    del asking.calls[calls:]
    fields = [*events, *[""] * max(1, EVENTS_ASKED - len(events))]
    return {"sets": [rule_set for rule_set in sets if rule_set not in own], "events": fields, "types": types}


def _preview(asking: Asking, kind: Kind, name: str, text: str) -> dict[str, Any]:
    """What a text without mistakes would do to people."""
    if not (kind.preview and asking.may(kind.preview)):
        return {}
    try:
        answer, chart = asking.picture(kind.preview, text=text, name=name, seconds=PREVIEW_SECONDS)
    except ThreadlineError as error:
        return {"preview_problem": str(error)}
    return {"preview": answer, "chart": chart}


def _unnamed(kind: Kind) -> str:
    """A definition may be checked before it has a name."""
    return f"draft_of_{kind.section}"


def _in_a_file(kind: Kind, name: str, text: str) -> str:
    if not kind.section:
        return text
    inner = "\n".join(f"    {line}" if line.strip() else "" for line in text.rstrip().split("\n"))
    return f"{kind.section}:\n  {name or 'NAME'}:\n{inner}\n"


def _gutter(lines: int, check: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The numbers of the lines, each with what stands against it."""
    marked: dict[int, str] = {}
    for member, mark in (("warnings", "warn"), ("problems", "bad")):
        marked |= {remark["line"]: mark for remark in (check or {}).get(member, ()) if not remark["file"]}
    return [{"number": number, "mark": marked.get(number, "")} for number in range(1, lines + 1)]


def _screen(name: str, path: str, title: str, section: str, summary: str, within: str) -> Screen:
    kind = KINDS[section]
    return Screen(
        name=name,
        path=path,
        title=title,
        template="editor.html",
        load=_editor(kind),
        operation="definitions_check",
        needs=(f"{section}_list",) if section else (),
        summary=summary,
        in_navigation=False,
        within=within,
        is_form=True,
        parts={
            "checked": Part("editor_checked.html", _editor(kind, "checked")),
            "preview": Part("editor_preview.html", _editor(kind, "preview")),
            "panel": Part("editor_panel.html", _editor(kind, "panel")),
        },
    )


SCREENS = (
    _screen(
        "segment_new",
        "/segments/new",
        "Write a segment",
        "segments",
        "See who would belong to it while you write; then propose it, or put it in force.",
        "segments",
    ),
    _screen(
        "feature_new",
        "/features/new",
        "Write a feature",
        "features",
        "See how it would be spread over people while you write; then propose it, or put it in force.",
        "features",
    ),
    _screen(
        "journey_new",
        "/journeys/new",
        "Write a journey",
        "journeys",
        "Each mistake stands beside its line while you write; then propose it, or put it in force.",
        "journeys",
    ),
    _screen(
        "leaderboard_new",
        "/leaderboards/new",
        "Write a leaderboard",
        "leaderboards",
        "Each mistake stands beside its line while you write; then propose it, or put it in force.",
        "leaderboards",
    ),
    _screen(
        "rule_new",
        "/rules/new",
        "Write a rule",
        "rules",
        "It becomes a draft. Nothing happens before it is activated.",
        "rules",
    ),
    _screen(
        "definitions_new",
        "/definitions/new",
        "Check definitions",
        "",
        "Any definitions, checked beside everything in force: segments, features, rules, journeys and the rest.",
        "rules",
    ),
)
