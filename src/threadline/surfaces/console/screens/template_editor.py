"""The editor of mail templates: the mail stands beside its blocks, as a chosen person gets it, in every language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from threadline.capabilities.foundation.definitions.nested_splicing import value_at
from threadline.capabilities.foundation.definitions.splicing import value_of
from threadline.capabilities.reach.journeys.outline import path_of
from threadline.kernel.errors import ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.editing import BY, FORM, TO, YAML, definition_shape, mapping_of
from threadline.surfaces.console.item_editing import Drawn
from threadline.surfaces.console.item_panel import Panel
from threadline.surfaces.console.journey_editing import AT, DO
from threadline.surfaces.console.mail_frames import darkened, lightened
from threadline.surfaces.console.screens.drafts import (
    KINDS,
    beginning,
    begun,
    checked_text,
    declared_in_file,
    gutter_of,
)
from threadline.surfaces.console.template_editing import (
    BODIES,
    CALLED,
    NEW_BLOCKS,
    NEW_LANGUAGE,
    changed,
    is_block_of,
    language_at,
    languages_of,
    outlined,
    root_of,
)
from threadline.surfaces.console.template_panel import FIRST, SECTION, panel_of

KIND = KINDS[SECTION]
PERSON, DARK = "_person", "_dark"
"""Fields: as whom the mail is filled in, and whether it is shown as a program does that is dark."""
LINES_MIN, LINES_MAX = 14, 400
VALUES_MAX = 60
PEOPLE = 20
NO_HTML = "<!doctype html><title>No HTML</title><p>This mail has no HTML part.</p>"
BODY_NAMES = {"blocks": "blocks", "mjml": "MJML", "html": "HTML", "text": "text alone"}


def _state(asking: Asking) -> tuple[str, Drawn, Panel]:
    """The name of the template, and the template after what was sent with the fields of what is chosen."""
    query = asking.query
    name = query.get(KIND.name, "")
    text = query.get(KIND.text, "").replace("\r\n", "\n")
    if not (text or "_csrf" in query):
        text = begun(asking, KIND, name) or beginning(asking, KIND)
    state, action = Drawn(text, query.get(AT, "")), query.get(DO, "")
    panel = panel_of(asking, state)
    if panel.unfinished is not None and not action.startswith("remove:"):
        return name, state, panel
    state = changed(state._replace(text=panel.text), action, query.get(NEW_LANGUAGE, ""))
    if value_at(value_of(state.text), path_of(state.at)) is None:
        state = state._replace(at="")
    return name, state, panel if state == panel.state else panel_of(asking, state, is_new=True)


def _editor(part: str = "") -> Callable[[Asking], Mapping[str, Any]]:
    """What the page shows, or a part of it."""

    def load(asking: Asking) -> Mapping[str, Any]:
        name, state, panel = _state(asking)
        values = mapping_of(state.text)
        view = YAML if values is None else asking.query.get(TO) or asking.query.get(BY) or FORM
        check = checked_text(asking, KIND, definition_shape(asking.engine.catalogue, SECTION), name, state.text)
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
        if part not in ("checked", "preview") and view == FORM:
            content |= _blocks(asking, state, values or {}, panel)
        is_valid = check["check"] is not None and check["check"]["valid"]
        if is_valid and (part == "preview" or ("_csrf" in asking.query and not part)):
            content |= _seen(asking, name, state)
        if not part:
            content["people"] = _people(asking)
        return content

    return load


def _blocks(asking: Asking, state: Drawn, values: Mapping[str, Any], panel: Panel) -> dict[str, Any]:
    """The blocks of the language that is chosen, and what of them is chosen."""
    language = language_at(state.at)
    root = root_of(language)
    words = value_at(values, root) if root else values
    block: Any = value_at(values, path_of(state.at)) if is_block_of(state.text, state.at) else {}
    kind = next((kind for kind in CALLED if kind in block), "")
    return {
        "at": state.at,
        "root": ".".join((*map(str, root), "blocks")),
        "languages": languages_of(values),
        "language": language,
        "body": next((body for body in BODIES if isinstance(words, dict) and body in words), ""),
        "bodies": BODY_NAMES,
        "blocks": outlined(values, root),
        "chosen": kind,
        "called": CALLED,
        "new": [kind for kind in NEW_BLOCKS if "columns" not in state.at or kind not in ("columns", "footer")],
        "new_at_end": [*NEW_BLOCKS],
        "columns": len(block["columns"]) if kind == "columns" and isinstance(block["columns"], list) else 0,
        "pictures": _pictures(asking) if kind == "picture" else [],
        "first": FIRST,
        **panel.shown(asking),
    }


def _pictures(asking: Asking) -> list[dict[str, Any]]:
    """Pictures on offer. The page does not show this question."""
    calls = len(asking.calls)
    listed: list[dict[str, Any]] = asking.ask_or({"pictures": []}, "mail_pictures")["pictures"]
    del asking.calls[calls:]
    return listed


def _people(asking: Asking) -> list[dict[str, str]]:
    """Somebody to fill it in for. The page does not show this question."""
    calls = len(asking.calls)
    listed = asking.ask_or({"people": []}, "people_list", limit=PEOPLE)["people"]
    del asking.calls[calls:]
    return [
        {"value": identifier, "text": person["name"] or person["email"]}
        for person in listed
        for identifier in person["identifiers"][:1]
    ]


def _filled(asking: Asking, name: str, text: str, language: str) -> Mapping[str, Any]:
    """The mail in a language, or why there is none."""
    asked = {"text": text, "name": name, "person": asking.query.get(PERSON), "language": language}
    try:
        answer: Mapping[str, Any] = asking.ask("mail_preview_draft", **asked)
        return answer
    except ThreadlineError as error:
        return {"language": language, "problem": str(error), "hint": error.hint}


def _seen(asking: Asking, name: str, state: Drawn) -> dict[str, Any]:
    """The mail in every language, with that which is chosen first, and the values that may be put into it."""
    values = value_of(state.text)
    languages = languages_of(values)
    shown = language_at(state.at) or (languages[0] if languages else "")
    mails = {language: _filled(asking, name, state.text, language) for language in languages or [""]}
    return {
        "mail": mails.get(shown) or next(iter(mails.values())),
        "mails": list(mails.values()) if languages else [],
        "others": _languages_without(asking, values, languages),
        "person_values": _values(asking),
        "declared": name in {template["name"] for template in asking.ask("mail_templates")["templates"]},
    }


def _languages_without(asking: Asking, values: Any, languages: list[str]) -> list[str]:
    """Languages of people that the template is not there in, as far as some of them say. The page does not show this
    question."""
    trait = str(value_at(values, ("languages", "trait")) or "locale")
    calls = len(asking.calls)
    fields = asking.ask_or({"fields": []}, "definitions_fields", people=PEOPLE)["fields"]
    del asking.calls[calls:]
    paths = (f"traits.{trait}", ["traits", trait])
    samples = [sample for field in fields if field["field"] in paths for sample in field["samples"]]
    known = {language.casefold() for language in languages}
    spoken = {str(sample).replace("_", "-").casefold() for sample in samples}
    return sorted(tag for tag in spoken if known and not known & {tag, tag.partition("-")[0]})


def _values(asking: Asking) -> list[dict[str, str]]:
    """What is known of the person whom the mail is filled in for, each as a template says it."""
    ref = asking.query.get(PERSON, "").strip()
    if not ref:
        return []
    calls = len(asking.calls)
    try:
        person = asking.ask("person", id=ref, timeline=0)
    except ThreadlineError:
        return []  # the preview says so
    finally:
        del asking.calls[calls:]
    traits = [(f"person.traits.{name}", value) for name, value in sorted(person["traits"].items())]
    features = [
        (f"features.{name}", feature["value"])
        for name, feature in sorted(person["features"].items())
        if feature["value"] not in (None, 0, "", [], {})
    ]
    own = [("person.email", next((value for path, value in traits if path.endswith(".email")), ""))]
    named = [(path, value) for path, value in (*traits, *own, *features) if path.replace(".", "_").isidentifier()]
    return [{"path": path, "value": str(value)} for path, value in named if value not in (None, "")][:VALUES_MAX]


def _document(asking: Asking) -> Mapping[str, Any]:
    """The HTML of the mail that is chosen, for a frame."""
    name, state, _ = _state(asking)
    languages = languages_of(value_of(state.text))
    shown = language_at(state.at) or (languages[0] if languages else "")
    html = _filled(asking, name, state.text, shown).get("html") or NO_HTML
    return {"document": (darkened if asking.query.get(DARK) else lightened)(html)}


SCREENS = (
    Screen(
        name="template_new",
        path="/templates/new",
        title="Write a template",
        template="template_editor.html",
        load=_editor(),
        operation="definitions_check",
        needs=("mail_templates",),
        summary="See the mail as somebody gets it while you write; then propose it, or put it in force.",
        in_navigation=False,
        within="templates",
        is_form=True,
        parts={
            "checked": Part("template_checked.html", _editor("checked")),
            "preview": Part("template_seen.html", _editor("preview")),
            "panel": Part("template_panel.html", _editor("panel")),
            "html": Part("", _document, is_document=True),
        },
    ),
)
