"""Templates filled in for one person: sandboxed, HTML escaped, and never half a mail."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from threadline.capabilities.mail.definition import LINKS, SEEN, Template
from threadline.capabilities.mail.plain_text import text_of
from threadline.capabilities.mail.sources import Sources, joined
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.limits import MAIL_PART_BYTES_MAX
from threadline.kernel.suggestion import nearest, suggestion

if TYPE_CHECKING:
    from minijinja import Environment

FUEL = 200_000
"""Steps of one template: a loop over a list that somebody else has made long ends."""
SUBJECT_LENGTH_MAX = 500
SUBJECTS_CACHED = 100
"""Other subjects of one template: those of the arms of broadcasts and journeys."""
EXTRA = "templates need minijinja, mrml and css-inline; install the extra: pip install 'threadline[mail]'"

_FUNCTIONS = frozenset({"range", "dict", "namespace", "loop", "super", "self", "caller", "debug"})
_MJML_TAG = re.compile(r"</?(mj[a-z-]*)")
_MJML_TAGS = frozenset({
    "mjml", "mj-accordion", "mj-accordion-element", "mj-accordion-text", "mj-accordion-title", "mj-all",
    "mj-attributes", "mj-body", "mj-breakpoint", "mj-button", "mj-carousel", "mj-carousel-image", "mj-class",
    "mj-column", "mj-divider", "mj-font", "mj-group", "mj-head", "mj-hero", "mj-html-attribute",
    "mj-html-attributes", "mj-image", "mj-navbar", "mj-navbar-link", "mj-preview", "mj-raw", "mj-section",
    "mj-selector", "mj-social", "mj-social-element", "mj-spacer", "mj-style", "mj-table", "mj-text", "mj-title",
    "mj-wrapper"
})  # fmt: skip
_BREAKS = re.compile(r"[\x00-\x20\x7f\x85\u2028\u2029]+")


class TemplateFailed(InvalidValue):
    """A template could not be filled in."""

    code = "template_failed"


class Rendered(NamedTuple):
    """The parts of a mail, filled in."""

    subject: str
    html: str
    """Empty for a mail of text alone."""
    text: str


class Compiled:
    """A template, ready to be filled in."""

    def __init__(self, template: Template, sources: Sources) -> None:
        self.template = template
        self.sources = sources
        self.version = sources.version
        self._environments = {escaped: _environment(sources.texts, escaped) for escaped in (True, False)}
        self._with_subject: dict[str, Compiled] = {}
        self.reads = self._read_paths()
        """The paths that its sources read, such as ``person.traits.plan``."""
        self._below: dict[str, set[str]] = {}
        for path in self.reads:
            root, _, rest = path.partition(".")
            self._below.setdefault(root, set()).add(rest.partition(".")[0])

    def read_below(self, root: str) -> Set[str]:
        """The names that its sources read directly below a root, such as the features; "" where it reads all."""
        return self._below.get(root, frozenset())

    def with_subject(self, subject: str) -> Compiled:
        """The same with another subject, of the same version. Raises `InvalidDefinition` for what is no template."""
        made = self._with_subject.get(subject)
        if made is None:
            texts = {**self.sources.texts, self.sources.parts["subject"]: subject}
            made = Compiled(self.template, self.sources._replace(texts=texts))
            made.version = self.version
            if len(self._with_subject) >= SUBJECTS_CACHED:
                self._with_subject.clear()
            self._with_subject[subject] = made
        return made

    def render(self, context: Mapping[str, Any]) -> Rendered:
        """The mail for this context. Raises `TemplateFailed` where a part needs what is not there."""
        from minijinja import safe

        # Escaped, their slashes would be entities, which is right in HTML and puzzles whoever reads the source.
        links = {name: safe(context[name]) for name in LINKS if name in context}
        context, parts = {**context, **links}, self.sources.parts
        subject = _BREAKS.sub(" ", self._filled("subject", context)).strip()
        if not 0 < len(subject) <= SUBJECT_LENGTH_MAX:
            raise TemplateFailed(f"the subject has {len(subject):,} characters, and not 1 to {SUBJECT_LENGTH_MAX}")
        html = ""
        if "mjml" in parts:
            html = _of_mjml(self._filled("mjml", context))
        elif "html" in parts:
            html = _inlined(self._filled("html", context))
        text = self._filled("text", context) if "text" in parts else text_of(html)
        for part, filled in (("html", html), ("text", text)):
            if len(filled.encode("utf-8", "replace")) > MAIL_PART_BYTES_MAX:
                raise TemplateFailed(f"the part {part} has more than {MAIL_PART_BYTES_MAX:,} bytes")
        return Rendered(subject, html, text)

    def problems(self) -> Iterator[str]:
        """What its sources name and nobody knows, each with its place."""
        known = {*SEEN, *self.template.variables}
        for name, source in self.sources.texts.items():
            for path in sorted(self._paths(name)):
                if problem := self._unknown(path, known):
                    place = self.sources.place(name, _line_of(source, path))
                    yield f"{place}: template {self.template.name!r}: {problem}"
        if "mjml" in self.sources.parts:
            yield from self._unknown_tags()

    def _unknown(self, path: str, known: set[str]) -> str:
        root, _, rest = path.partition(".")
        member = rest.partition(".")[0]
        if root not in known:
            hint = suggestion(root, known, "declare it under `variables`")
            return f"nothing is known under {root!r}; {hint}"
        if SEEN.get(root) and member and member not in SEEN[root]:
            return f"{root!r} has no {member!r}; {suggestion(member, SEEN[root])}"
        return ""

    def _unknown_tags(self) -> Iterator[str]:
        for name, source in self.sources.texts.items():
            for match in _MJML_TAG.finditer(source):
                if match[1] not in _MJML_TAGS:
                    place = self.sources.place(name, source.count("\n", 0, match.start()) + 1)
                    hint = nearest(match[1], _MJML_TAGS)
                    hint = f"; did you mean <{hint}>?" if hint else ""
                    yield f"{place}: template {self.template.name!r}: MJML has no <{match[1]}>{hint}"

    def _read_paths(self) -> frozenset[str]:
        return frozenset(path for name in self.sources.texts for path in self._paths(name))

    def _paths(self, name: str) -> set[str]:
        """What a source takes from the context. Raises `InvalidDefinition` for what is no template."""
        from minijinja import TemplateError

        try:
            paths = self._environments[True].undeclared_variables_in_str(self.sources.texts[name], nested=True)
        except TemplateError as error:
            place = self.sources.place(name, error.line or 1)
            what = error.detail or error.message.splitlines()[0]
            raise InvalidDefinition(f"{place}: template {self.template.name!r}: {what}") from None
        return {path for path in paths if path.partition(".")[0] not in _FUNCTIONS}

    def _filled(self, part: str, context: Mapping[str, Any]) -> str:
        from minijinja import TemplateError

        name = self.sources.parts[part]
        try:
            return self._environments[part in ("html", "mjml")].render_template(name, **context)
        except TemplateError as error:
            place = self.sources.place(error.name or name, error.line or 1)
            raise TemplateFailed(f"{place}: {error.detail or error.kind}") from None


def compiled(template: Template, sources: Sources) -> Compiled:
    """A template of these sources. Raises `InvalidDefinition` with every problem, one a line."""
    try:
        made = Compiled(template, sources)
    except ImportError:
        raise InvalidDefinition(f"{template.place}: template {template.name!r}: {EXTRA}") from None
    problems = list(dict.fromkeys(made.problems()))
    if problems:
        raise InvalidDefinition("\n".join(problems))
    return made


def restored(template: Template, packed: bytes) -> Compiled:
    """A template as it was, from what was kept of it."""
    stored = msgspec.json.decode(packed)
    return Compiled(template, Sources(stored["parts"], stored["texts"], {}))


def _environment(texts: Mapping[str, str], escaped: bool) -> Environment:
    from minijinja import Environment

    return Environment(
        loader=texts.get, auto_escape_callback=lambda name: escaped, path_join_callback=joined, fuel=FUEL,
        undefined_behavior="strict", trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip


def _of_mjml(source: str) -> str:
    import mrml

    try:
        # Without the fonts that it would load from elsewhere: whoever serves them would learn who reads the mail.
        return mrml.to_html(source, None, mrml.RenderOptions(fonts={})).content
    except (OSError, ValueError) as error:
        raise TemplateFailed(f"what was filled in is no MJML: {error}") from None


_inliner: list[Callable[[str], str]] = []


def _inlined(html: str) -> str:
    if "<style" not in html.lower():
        return html
    if not _inliner:
        from css_inline import CSSInliner

        _inliner.append(CSSInliner(keep_at_rules=True, load_remote_stylesheets=False).inline)
    return _inliner[0](html)


def _line_of(source: str, path: str) -> int:
    """The line of a source on which a path stands first; 1 if it is written in another way."""
    for steps in (path, path.partition(".")[0]):
        match = re.search(rf"\{{[\{{%][^}}]*?(?<![\w.]){re.escape(steps)}(?!\w)", source)
        if match is not None:
            return source.count("\n", 0, match.end()) + 1
    return 1
