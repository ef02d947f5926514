"""The editor of journeys: the drawing is written in, and what the journey would have done stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any

import msgspec

from threadline.capabilities.decide.drafts.draft import in_force as in_force_definitions
from threadline.capabilities.reach.journeys.outline import ADD, Outline, OutlinedStep, outlined, path_of
from threadline.capabilities.reach.mail.definition import Mail, read_mail
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.editing import BY, FORM, TO, YAML, definition_shape, mapping_of
from threadline.surfaces.console.flowchart import drawn as picture_of
from threadline.surfaces.console.item_editing import Drawn
from threadline.surfaces.console.item_panel import Panel
from threadline.surfaces.console.journey_editing import AT, DO, MOVING, changed
from threadline.surfaces.console.journey_panel import FIRST, in_force, is_branch, panel_of, raised
from threadline.surfaces.console.journey_settings import outside, panels
from threadline.surfaces.console.screens.drafts import (
    KINDS,
    beginning,
    begun,
    checked_text,
    declared_in_file,
    gutter_of,
)
from threadline.surfaces.console.screens.journeys import with_steps

KIND = KINDS["journeys"]
PREVIEW_SECONDS = 1.5
LINES_MIN, LINES_MAX = 14, 400
NEW = (
    ("send", "Send a mail"),
    ("wait", "Wait for a while"),
    ("event", "Wait for an event"),
    ("if", "Ask a question"),
    ("choice", "Choose one of several paths"),
    ("tag", "Give a tag"),
    ("untag", "Take a tag"),
    ("trait", "Set a trait"),
    ("fact", "Remember a fact"),
    ("points", "Give points"),
    ("webhook", "Call another system"),
    ("start", "Start another journey"),
    ("leave", "Leave another journey"),
    ("exit", "End the journey"),
)
"""What may be put in, and what its button is called."""
CALLED = {
    "send": "Mail",
    "tag": "Tag",
    "untag": "Tag taken",
    "trait": "Trait",
    "fact": "Fact",
    "points": "Points",
    "webhook": "Webhook",
    "start": "Journey started",
    "leave": "Journey left",
    "wait": "Wait",
    "if": "Question",
    "choice": "Choice",
    "exit": "End",
    "unknown": "Step",
}
"""Kind of a step -> what stands above its fields."""


def _editor(part: str = "") -> Callable[[Asking], Mapping[str, Any]]:
    """What the page shows, or a part of it."""

    def load(asking: Asking) -> Mapping[str, Any]:
        query = asking.query
        name, is_posted = query.get(KIND.name, ""), "_csrf" in query
        text = query.get(KIND.text, "").replace("\r\n", "\n")
        if not (text or is_posted):
            text = begun(asking, KIND, name) or beginning(asking, KIND)
        state, panel = _edited(asking, Drawn(text, query.get(AT, ""), query.get(MOVING, "")))
        there = in_force(asking, name)
        state = state._replace(text=raised(state.text, there))
        outline = outlined(state.text)
        view = YAML if outline is None else query.get(TO) or query.get(BY) or FORM
        check = checked_text(asking, KIND, definition_shape(asking.engine.catalogue, KIND.section), name, state.text)
        lines = state.text.count("\n") + 1
        content: dict[str, Any] = {
            "kind": KIND._asdict(),
            "name": name,
            **declared_in_file(asking, KIND, name),
            "text": state.text,
            "view": view,
            "unfinished": str(panel.unfinished or ""),
            "rows": min(max(lines + 1, LINES_MIN), LINES_MAX),
            "gutter": gutter_of(lines, check["check"]),
            **check,
        }
        if outline is not None and part != "preview":
            problems = _by_step(outline, check["check"])
            content["at_steps"] = problems
            if view == FORM and part != "checked":
                content |= _drawn(asking, state, outline, problems, panel, there)
        if check["check"] and check["check"]["valid"] and (part == "preview" or (is_posted and not part)):
            content |= _preview(asking, name, state.text, outline)
        return content

    return load


def _edited(asking: Asking, state: Drawn) -> tuple[Drawn, Panel]:
    """The journey after what was sent, and the fields of what is chosen. What is not finished stays chosen."""
    action = asking.query.get(DO, "")
    panel = panel_of(asking, state)
    if panel.unfinished is not None and not action.startswith(LEAVING):
        return state, panel
    state = changed(state._replace(text=panel.text), action, _examples(asking) if action.startswith("new:") else {})
    return state, panel if state == panel.state else panel_of(asking, state, is_new=True)


LEAVING = ("remove:", "unbranch:")
"""What may be done to a step that is not finished."""


def _examples(asking: Asking) -> dict[str, str]:
    """Names that new steps begin with."""
    calls = len(asking.calls)
    lists = {"template": "mail_templates", "journey": "journeys_list", "destination": "webhooks_destinations"}
    examples = {"event": "purchase_completed"}
    for what, operation in lists.items():
        known = asking.ask_or({f"{what}s": []}, operation)[f"{what}s"]
        examples[what] = next((item["name"] for item in known), what.upper())
    del asking.calls[calls:]  # they are examples; what the page shows is what is written
    return examples


def _drawn(
    asking: Asking, state: Drawn, outline: Outline, problems: Mapping[str, Sequence[Any]], panel: Panel, there: str
) -> dict[str, Any]:
    """The drawing, and the chosen step beside it."""
    steps = {step.step: step for step in outline.steps}
    picture = picture_of(msgspec.to_builtins(outline), None)
    marks, gone = _difference(outline, there)
    for box in picture["boxes"]:
        box |= {"mark": marks.get(box["step"], ""), "problems": problems.get(box["step"], [])}
    chosen = steps.get(state.at)
    is_point = state.at.startswith(ADD) and state.at in steps
    return {
        "picture": picture,
        "at": state.at if chosen or is_branch(state) else "",
        "moving": state.moving if state.moving in steps else "",
        "point": state.at.removeprefix(ADD) if is_point else "",
        "new": NEW,
        "first": FIRST,
        "gone": gone,
        "chosen": None if chosen is None or is_point else _chosen(chosen, problems),
        "branch": state.at if not is_point and is_branch(state) else "",
        "entered_by": outline.entered_by,
        **_fields(asking, panel),
    }


def _fields(asking: Asking, panel: Panel) -> dict[str, Any]:
    """The fields of what is chosen; of the journey itself in panels."""
    content = panel.shown(asking)
    if panel.edited is None or panel.state.at:
        return content
    definitions = in_force_definitions(asking.engine.catalogue)
    mail, fields = read_mail(definitions) or Mail(), content["fields"]
    settings = panels(mapping_of(panel.text) or {}, mail, fields)
    return {**content, "fields": outside(fields), "settings": settings}


def _chosen(step: OutlinedStep, problems: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    branches = [way for way in step.ways if way.to.startswith(f"{ADD}{step.step}.choice.")]
    return {
        **msgspec.to_builtins(step),
        "title": CALLED[step.kind],
        "problems": problems.get(step.step, []),
        "branches": [(f"{step.step}.choice.{number}", way.when) for number, way in enumerate(branches)],
    }


def _by_step(outline: Outline, check: Mapping[str, Any] | None) -> dict[str, list[Any]]:
    """The path of each step that something is wrong with -> what; empty: the journey itself."""
    made: dict[str, list[Any]] = {}
    for member, mark in (("problems", "bad"), ("warnings", "warn")):
        for remark in (check or {}).get(member, ()):
            if not remark["file"]:
                around = (step for step in outline.steps if step.first_line <= remark["line"] <= step.last_line)
                at = max(around, key=lambda step: len(path_of(step.step)), default=None)
                made.setdefault(at.step if at else "", []).append({**remark, "mark": mark})
    return made


def _difference(outline: Outline, there: str) -> tuple[dict[str, str], list[str]]:
    """What is new or other than in force, by path, and what is gone, in words."""
    before = outlined(there) if there else None
    if before is None:
        return {}, []
    old = [step for step in before.steps if step.kind != ADD]
    new = [step for step in outline.steps if step.kind != ADD]
    marks: dict[str, str] = {}
    gone: list[str] = []
    matcher = SequenceMatcher(None, [_key(step) for step in old], [_key(step) for step in new], autojunk=False)
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if kind == "equal":
            continue
        pairs = min(old_to - old_from, new_to - new_from)
        for number, step in enumerate(new[new_from:new_to]):
            is_changed = number < pairs and step.kind == old[old_from + number].kind
            marks[step.step] = "changed" if is_changed else "new"
            if number < pairs and not is_changed:
                gone.append(old[old_from + number].does)
        gone += [step.does for step in old[old_from + pairs : old_to]]
    return marks, gone


def _key(step: OutlinedStep) -> tuple[int, str, str]:
    return len(path_of(step.step)), step.kind, step.does


def _preview(asking: Asking, name: str, text: str, outline: Outline | None) -> dict[str, Any]:
    """What a journey without mistakes would have done."""
    if not asking.may("journeys_preview"):
        return {}
    try:
        answer = asking.ask("journeys_preview", text=text, name=name, seconds=PREVIEW_SECONDS)
    except ThreadlineError as error:
        return {"preview_problem": str(error)}
    drawn_steps = outline.steps if outline is not None else []
    steps = {step.id: {"does": step.does, "path": step.step} for step in drawn_steps if step.kind != ADD}
    return {"preview": with_steps(answer, steps)}


SCREENS = (
    Screen(
        name="journey_new",
        path="/journeys/new",
        title="Draw a journey",
        template="journey_editor.html",
        load=_editor(),
        operation="definitions_check",
        needs=("journeys_list",),
        summary="See what it would have done on your own history while you draw; then propose it, or put it in force.",
        in_navigation=False,
        within="journeys",
        is_form=True,
        parts={
            "checked": Part("journey_checked.html", _editor("checked")),
            "preview": Part("journey_tried.html", _editor("preview")),
            "panel": Part("journey_panel.html", _editor("panel")),
        },
    ),
)
