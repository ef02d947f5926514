"""Templates of mails: what is wrong with their sources, what they read, and their filling in for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.reach.mail.definition import LINKS, SEEN, Template
from threadline.capabilities.reach.mail.filling import Filled, Filling, faulty_styles, fill, paths_in
from threadline.capabilities.reach.mail.sources import Sources
from threadline.kernel.confined import Confined, Exceeded
from threadline.kernel.errors import InvalidDefinition, InvalidValue
from threadline.kernel.suggestion import nearest, suggestion

SUBJECTS_CACHED = 100
"""Other subjects of one template: those of the arms of broadcasts and journeys."""

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

    def filling(self, values: Mapping[str, Any]) -> Filling:
        """What it is filled in with for somebody."""
        return Filling(self.sources.parts, self.sources.texts, LINKS, values)

    def rendered(self, filled: list[Any] | Exceeded) -> Rendered | TemplateFailed:
        """The mail that was filled in, or why it was not."""
        if isinstance(filled, Exceeded):
            return TemplateFailed(f"it did not come back, twice: {filled.why}")
        made = Filled(*filled)
        if not made.failure:
            return Rendered(made.subject, made.html, made.text)
        place = f"{self.sources.place(made.source, made.line)}: " if made.source else ""
        return TemplateFailed(f"{place}{made.failure}")

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
        names = [
            name
            for name in self.sources.texts
            if name not in (self.sources.parts.get("text"), self.sources.parts["subject"])
        ]
        for (number, line), problem in faulty_styles([self.sources.texts[name] for name in names]):
            yield f"{self.sources.place(names[number], line)}: template {self.template.name!r}: {problem}"

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
        paths = paths_in(self.sources.texts, name)
        if isinstance(paths, Filled):
            place = self.sources.place(name, paths.line)
            raise InvalidDefinition(f"{place}: template {self.template.name!r}: {paths.failure}")
        return {path for path in paths if path.partition(".")[0] not in _FUNCTIONS}


def render(confined: Confined, mails: Sequence[tuple[Compiled, Mapping[str, Any]]]) -> list[Rendered | TemplateFailed]:
    """Templates, each filled in with its context; `TemplateFailed` where a part needs what is not there."""
    filled = confined.run(fill, [compiled.filling(context) for compiled, context in mails])
    return [compiled.rendered(result) for (compiled, _), result in zip(mails, filled, strict=True)]


def compiled(template: Template, sources: Sources) -> Compiled:
    """A template of these sources. Raises `InvalidDefinition` with every problem, one a line."""
    made = Compiled(template, sources)
    problems = list(dict.fromkeys(made.problems()))
    if problems:
        raise InvalidDefinition("\n".join(problems))
    return made


def restored(template: Template, packed: bytes) -> Compiled:
    """A template as it was, from what was kept of it."""
    stored = msgspec.json.decode(packed)
    return Compiled(template, Sources(stored["parts"], stored["texts"], {}))


def _line_of(source: str, path: str) -> int:
    """The line of a source on which a path stands first; 1 if it is written in another way."""
    for steps in (path, path.partition(".")[0]):
        match = re.search(rf"\{{[\{{%][^}}]*?(?<![\w.]){re.escape(steps)}(?!\w)", source)
        if match is not None:
            return source.count("\n", 0, match.end()) + 1
    return 1
