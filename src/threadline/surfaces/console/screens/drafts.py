"""Editors: a definition is checked while it is written, and what it would do to people is shown beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain, count
from typing import Any, NamedTuple

from threadline.capabilities.decide.drafts.draft import in_force
from threadline.capabilities.decide.drafts.sections import BY_MEMBER, by_hand_of, keys_of, members_of, once_of
from threadline.capabilities.decide.rules.declared import in_no_set
from threadline.capabilities.foundation.conditions import plain
from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.document import BY_HAND
from threadline.capabilities.foundation.definitions.splicing import spliced, value_of
from threadline.capabilities.foundation.definitions.writing import yaml_of
from threadline.kernel.errors import NotFound, ThreadlineError
from threadline.kernel.screen import Part, Screen
from threadline.surfaces.console.asking import Asking
from threadline.surfaces.console.conditions_yaml import path_at, tree_in
from threadline.surfaces.console.definition_form import field_at
from threadline.surfaces.console.editing import YAML, content_of, definition_shape, edited, mapping_of, names_of
from threadline.surfaces.console.event_types import suggested
from threadline.surfaces.console.formats import label, words
from threadline.surfaces.console.shapes import VALUE, Shape
from threadline.surfaces.console.trace import tree_of_conditions

PREVIEW_SECONDS = 1
LINES_MIN, LINES_MAX = 14, 400
MARKS = {"warnings": "warn", "problems": "bad"}
"""What a check says of a text -> how its lines are marked."""
SEGMENT = "when:\n  all:\n    - {field: features.monetary_total, greater_than: 100}\n"
FEATURE = "aggregate: count\nevents: purchase_completed\nwindow: 30d\n"
LEADERBOARD = "score: features.monetary_total\n"
MAIL = """\
subject: Hello
blocks:
  - heading: Hello {{ person.traits.first_name | default("there") }}
  - text: Some words
  - footer: {text: Your company and its address}
"""
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
    begin: str = ""
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
    example: str = ""
    """A good name."""
    first: tuple[str, ...] = ()
    """Fields that are shown at once though they may be left empty."""
    back: tuple[str, str] = ("", "")
    """The page that lists them, and its title; empty: that of the section."""
    then: str = ""
    """Where somebody gets to who has written it by `write`."""

    is_once: bool = False
    """Whether all of the section is one definition, called like it."""
    is_member: bool = False
    """Whether a definition is a member of the section, such as the quiet hours of ``mail``."""

    @property
    def listed_at(self) -> str:
        """The page that lists them."""
        return self.back[0] or (f"/{self.section}" if self.section else "/rules")


_LISTED = ("/declared", "Other definitions")
KINDS = {
    "segments": Kind("segments", SEGMENT, "segments_preview", key="when", example="big_spenders"),
    "features": Kind(
        "features",
        FEATURE,
        "features_preview",
        example="orders_of_30_days",
        first=("events", "of", "where", "window", "numerator", "denominator", "parts"),
    ),
    "rules": Kind(
        "rules",
        RULE,
        name="id",
        text="rule:yaml",
        key="conditions",
        write="rules_write",
        example="large-order",
        first=("name", "conditions"),
        then="/rules/{id}?version={version}",
    ),
    "rule_sets": Kind(
        "rule_sets",
        text="*:yaml",
        write="rule_sets_write",
        example="orders",
        first=("policy",),
        back=("/rules", "Rules"),
        then="/rules",
    ),
    "journeys": Kind("journeys", JOURNEY, example="welcome_back", first=("trigger", "reentry")),
    "leaderboards": Kind(
        "leaderboards", LEADERBOARD, "leaderboards_preview", example="best_customers", first=("periods",)
    ),
    "streaks": Kind(
        "streaks",
        preview="streaks_preview",
        example="weekly_run",
        first=("events", "cadence", "times", "milestones"),
        back=_LISTED,
    ),
    "points": Kind(
        "points",
        preview="points_preview",
        first=("tables", "multipliers", "expires_after"),
        back=_LISTED,
        is_once=True,
    ),
    "interests": Kind("interests", first=("mode", "topics", "events"), back=_LISTED, is_once=True),
    "consent.topics": Kind("consent.topics", example="newsletter", first=("title", "default"), back=_LISTED),
    "mail.senders": Kind("mail.senders", example="shop", first=("name", "reply_to"), back=_LISTED),
    "mail.templates": Kind(
        "mail.templates",
        MAIL,
        example="welcome",
        first=("blocks", "html", "mjml", "text", "sender", "topic", "transactional"),
        back=("/templates", "Templates"),
    ),
    "": Kind("", FILE),
}


EXAMPLES = {
    "destinations": "crm",
    "event_schemas": "purchase_completed",
    "memory": "favourite_category",
    "retention": "product_viewed",
}
"""Section without a kind of its own -> a good name."""
FIRST = {"event_schemas": ("type", "required", "properties"), "memory": ("events", "fact", "value", "says")}
"""Likewise the fields that are shown at once."""


def kind_of(asking: Asking, section: str) -> Kind:
    """What an editor of a section is for; of one that has no kind of its own, such as that of a plug-in, made of its
    schema. Raises `NotFound` for a section of which nothing can be made by hand."""
    catalogue = asking.engine.catalogue
    if section not in by_hand_of(catalogue):
        raise NotFound(f"{section[:64]!r} is no section that can be made by hand", hint=f"{_LISTED[0]} lists them")
    return KINDS.get(section) or Kind(
        section,
        example=EXAMPLES.get(section, ""),
        first=FIRST.get(section, ()),
        back=_LISTED,
        is_once=section in once_of(catalogue),
        is_member=section in BY_MEMBER,
    )


def form_path(section: str) -> str:
    """The page of the form of a section."""
    return FORM_PATHS.get(section) or f"/declared/{section}"


def _in_force(asking: Asking, section: str, name: str) -> str:
    """The definition of this name as it is written; one that is written in a line in several, which are easier to
    change."""
    if section == "rules":
        rule = asking.ask_or(None, "rules_show", id=name, version=asking.query.get("version"))
        return "" if rule is None else yaml_of(rule_text(rule["content"]), is_compact=True)
    if section == "rule_sets":
        return _rule_set(asking, name)
    text: str = asking.ask_or({"text": ""}, "definitions_show", section=section, name=name)["text"]
    return yaml_of(value_of(text), is_compact=True) if text.startswith("{") and "#" not in text else text


def _rule_set(asking: Asking, name: str) -> str:
    """A rule set as it is written."""
    listed = asking.ask_or({}, "rule_sets_list").get("rule_sets", [])
    rule_set = next((rule_set for rule_set in listed if rule_set["name"] == name), None)
    if rule_set is None:
        return ""
    written = {"events": rule_set["events"], "rules": [*rule_set["rules"], *rule_set["absent"]]}
    usual = {"policy": "all", "record": "matched", "existing": False, "description": ""}
    others = {key: rule_set[key] for key, value in usual.items() if rule_set[key] != value}
    return yaml_of({**written, **others}, is_compact=True)


def proposals(asking: Asking, section: str) -> list[dict[str, Any]]:
    """What is proposed of a section, with the conditions in words where they have some."""
    listed = asking.ask_or({"proposals": []}, "definitions_proposals")["proposals"]
    return [
        {**proposal, "tree": _tree_of_text(proposal["text"]), "form": form_path(section)}
        for proposal in listed
        if proposal["section"] == section
    ]


def _tree_of_text(text: str) -> dict[str, Any] | None:
    tree = tree_in(text, "when")
    return None if isinstance(tree, str) else tree_of_conditions(plain(tree))


def begun(asking: Asking, kind: Kind, name: str) -> str:
    """What somebody goes on with: what is proposed, or in force."""
    if asking.query.get("proposal"):
        texts = (proposal["text"] for proposal in proposals(asking, kind.section) if proposal["name"] == name)
        return next(texts, "")
    name = asking.query.get("like", "") or name
    return _in_force(asking, kind.section, name) if kind.section and name else ""


def beginning(asking: Asking, kind: Kind) -> str:
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


def _editor(known: Kind | None, part: str = "") -> Callable[[Asking], Mapping[str, Any]]:
    """What a page of the editor shows, or a part of it. A preview takes its time, so that it is a part of its own;
    only a page that is asked for with a form, as without the script, waits for it."""

    def load(asking: Asking) -> Mapping[str, Any]:
        kind = known or kind_of(asking, asking.path["section"])
        name, posted = asking.query.get(kind.name, ""), "_csrf" in asking.query
        name = kind.section if kind.is_once else name
        if kind.is_member and name not in (members := members_of(asking.engine.catalogue, kind.section)):
            raise NotFound(f"{kind.section} has no member {name[:64]!r}", hint=f"There are {', '.join(members)}.")
        shape = definition_shape(asking.engine.catalogue, kind.section, name) if kind.section else None
        text = asking.query.get(kind.text, "")
        if not (text or posted):
            text = begun(asking, kind, name) or beginning(asking, kind)
        draft = edited(asking, shape, kind.key, text.replace("\r\n", "\n"))
        needs_check = not draft.unfinished and (part != "panel" or draft.view == YAML)
        checked = checked_text(asking, kind, shape, name, draft.text) if needs_check else {"check": None}
        if checked["check"] and checked["check"]["valid"] and (part == "preview" or (posted and not part)):
            checked |= _preview(asking, kind, name, draft.text)
        lines = draft.text.count("\n") + 1
        written = draft.beside_the_form() if part in WITHOUT_FORM else draft.shown(asking, kind.key)
        if kind.section == "rules" and not part:
            written = {**written, **_runs(asking, name)}
        return {
            **written,
            "kind": {**kind._asdict(), "listed_at": kind.listed_at},
            "name": name,
            **declared_in_file(asking, kind, name),
            **({} if known else _headed(asking, kind, name)),
            "rows": min(max(lines + 1, LINES_MIN), LINES_MAX),
            "gutter": gutter_of(lines, checked["check"]),
            **checked,
        }

    return load


def _headed(asking: Asking, kind: Kind, name: str) -> dict[str, str]:
    """What the page of a section says at its top that has no page of its own."""
    title = label(kind.section)
    return {
        "heading": f"{title}: {words(name)}" if kind.is_member else title,
        "about": described(asking, kind.section, name if kind.is_member else ""),
    }


def described(asking: Asking, section: str, member: str = "") -> str:
    """What a section is, or a member of it, as its schema describes it."""
    schemas = (known.schema for known in asking.engine.catalogue.sections if known.name == section)
    schema: Mapping[str, Any] = next(schemas, {})
    schema = schema.get("properties", {}).get(member, {}) if member else schema
    return str(schema.get("description", ""))


def declared_in_file(asking: Asking, kind: Kind, name: str) -> dict[str, str]:
    """Of a definition that a file declares, which is changed there alone, where it stands and a free name for a copy;
    empty texts: no file does, or it has versions of its own."""
    if not name or not kind.section or kind.write:
        return {"declared_at": "", "copy_name": ""}
    catalogue = asking.engine.catalogue
    definitions = in_force(catalogue)
    written = definitions.written(keys_of(catalogue, kind.section, name))
    if written is None or not written.file:
        return {"declared_at": "", "copy_name": ""}
    taken = () if kind.is_once or kind.is_member else definitions.names_in(*kind.section.split(".")) or ()
    return {"declared_at": shown_place(definitions, written.file), "copy_name": _free_name(name, taken)}


def _free_name(name: str, taken: Collection[str]) -> str:
    """A name like another one that nothing has yet."""
    numbered = (f"{name}_copy{number}" for number in count(2))
    return next(free for free in chain((f"{name}_copy",), numbered) if free not in taken)


def shown_place(definitions: Definitions, place: str) -> str:
    """A file, or a file and line, as pages show it: below the folder in which all definitions stand."""
    folders = [os.path.dirname(name) for name, _ in definitions.texts if name != BY_HAND]
    try:
        folder = os.path.commonpath(folders)
    except ValueError:  # some are absolute and some are not, or there is none
        return place
    return place.removeprefix(folder).lstrip(os.sep) if folder else place


def checked_text(asking: Asking, kind: Kind, shape: Shape | None, name: str, text: str) -> dict[str, Any]:
    """What is wrong with a text, and how it is written in a file."""
    if not text.strip():
        return {"check": None}
    given = {"section": kind.section, "name": name or _unnamed(kind)} if kind.section else {}
    check = asking.ask("definitions_check", text=text, **given)
    check |= {member: _placed(asking, check[member]) for member in MARKS}
    if kind.section == "rules":
        check = _without_set_warning(asking, check, given["name"])
    if kind.section == "rule_sets":
        check = _with_stored_rules(asking, check, text)
    if shape is not None:
        check = {**check, **{member: _at_fields(shape, kind.key, text, check[member]) for member in MARKS}}
    return {"check": check, "file": _in_a_file(asking, kind, name, text)}


def _placed(asking: Asking, remarks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Remarks, with their files as pages show them."""
    definitions = in_force(asking.engine.catalogue)
    return [{**remark, "file": remark["file"] and shown_place(definitions, remark["file"])} for remark in remarks]


def _with_stored_rules(asking: Asking, check: Mapping[str, Any], text: str) -> dict[str, Any]:
    """A check of a rule set without the problem that no file declares a rule, of rules that operations have written."""
    names = asking.engine.catalogue.names.offered("rule", asking.engine, asking.session.workspace)
    rules = (mapping_of(text) or {}).get("rules")

    def is_stored(problem: Mapping[str, Any]) -> bool:
        path = path_at(text, problem["line"], problem["column"]) if problem["line"] and not problem["file"] else []
        at = path[1] if path[:1] == ["rules"] and len(path) > 1 else None
        return isinstance(at, int) and isinstance(rules, list) and at < len(rules) and rules[at] in names

    problems = [problem for problem in check["problems"] if not is_stored(problem)]
    return {**check, "problems": problems, "valid": not problems}


def _at_fields(shape: Shape, key: str, text: str, remarks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Problems or warnings, each with the field that it is about where there is one."""
    return [{**remark, **_at_field(shape, key, text, remark)} for remark in remarks]


def _at_field(shape: Shape, key: str, text: str, remark: Mapping[str, Any]) -> dict[str, str]:
    path = path_at(text, remark["line"], remark["column"]) if remark["line"] and not remark["file"] else []
    value = content_of(shape, text) or {}
    path = [VALUE, *path] if shape.is_bare else path
    # What is wrong with all of it stands where it begins, as what is wrong with its first key does.
    is_of_all = (remark["line"], remark["column"]) == (1, 1) and f"`{path[0] if path else ''}`" not in remark["message"]
    name, title = ("", "") if is_of_all else field_at(shape, value, path, names_of(key))
    return {"field": name, "title": title}


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
    named = {} if kind.is_once else {"name": name}
    try:
        answer, chart = asking.picture(kind.preview, text=text, seconds=PREVIEW_SECONDS, **named)
    except ThreadlineError as error:
        return {"preview_problem": str(error)}
    return {"preview": answer, "chart": chart}


def _unnamed(kind: Kind) -> str:
    """A definition may be checked before it has a name."""
    return f"draft_of_{kind.section.rpartition('.')[2]}"


def _in_a_file(asking: Asking, kind: Kind, name: str, text: str) -> str:
    if not kind.section:
        return text
    keys = keys_of(asking.engine.catalogue, kind.section, name or "NAME")
    return spliced("", keys, text.rstrip()) or text


def gutter_of(lines: int, check: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The numbers of the lines, each with what stands against it."""
    marked: dict[int, str] = {}
    for member, mark in MARKS.items():
        marked |= {remark["line"]: mark for remark in (check or {}).get(member, ()) if not remark["file"]}
    return [{"number": number, "mark": marked.get(number, "")} for number in range(1, lines + 1)]


FORM_PATHS = {
    "segments": "/segments/new",
    "features": "/features/new",
    "rules": "/rules/new",
    "rule_sets": "/rule-sets/new",
    "journeys": "/journeys/new",
    "leaderboards": "/leaderboards/new",
    "streaks": "/streaks/new",
    "points": "/points/new",
    "interests": "/interests/new",
    "consent.topics": "/topics/new",
    "mail.senders": "/senders/new",
    "mail.templates": "/templates/new",
    "": "/definitions/new",
}
"""Section -> the page of its form."""


ANY = "{section}"
"""Stands for each section that has no page of its own."""


def _screen(name: str, title: str, section: str, summary: str, within: str, needs: tuple[str, ...] = ()) -> Screen:
    kind = KINDS.get(section)
    return Screen(
        name=name,
        path=form_path(section),
        title=title,
        template="editor.html",
        load=_editor(kind),
        operation="definitions_check",
        needs=needs or ((f"{section}_list",) if section else ()),
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
        "Write a segment",
        "segments",
        "See who would belong to it while you write; then propose it, or put it in force.",
        "segments",
    ),
    _screen(
        "feature_new",
        "Write a feature",
        "features",
        "See how it would be spread over people while you write; then propose it, or put it in force.",
        "features",
    ),
    _screen(
        "leaderboard_new",
        "Write a leaderboard",
        "leaderboards",
        "See who would stand first while you write; then propose it, or put it in force.",
        "leaderboards",
    ),
    _screen(
        "rule_new",
        "Write a rule",
        "rules",
        "It becomes a draft. Nothing happens before it is activated.",
        "rules",
    ),
    _screen(
        "rule_set_new",
        "Write a rule set",
        "rule_sets",
        "When several rules run: with each event of these types, in the order of their priority.",
        "rules",
    ),
    _screen(
        "streak_new",
        "Write a streak",
        "streaks",
        "See how many days, weeks or months in a row people would have while you write.",
        "declared",
        ("streaks_of",),
    ),
    _screen(
        "points_new",
        "What earns points",
        "points",
        "See what people would have earned by each rule while you write; then propose it, or put it in force.",
        "declared",
        ("points_tables",),
    ),
    _screen(
        "interests_new",
        "Topics of interest",
        "interests",
        "Which events show an interest, and how actions become a score of each topic.",
        "declared",
        ("interests_of",),
    ),
    _screen(
        "topic_new",
        "Write a topic",
        "consent.topics",
        "What people subscribe to, and may unsubscribe from without leaving the rest.",
        "declared",
        ("consent_topics",),
    ),
    _screen(
        "sender_new",
        "Write a sender",
        "mail.senders",
        "Who mails are from, and where answers go.",
        "declared",
        ("mail_templates",),
    ),
    _screen(
        "declared_one",
        "Write a definition",
        ANY,
        "Each mistake stands beside its field while you write; then propose it, or put it in force.",
        "declared",
        ("definitions_declare",),
    ),
    _screen(
        "definitions_new",
        "Check definitions",
        "",
        "Any definitions, checked beside everything in force: segments, features, rules, journeys and the rest.",
        "rules",
    ),
)
