"""Templates of mails: their files, what is wrong with them and what they read, and their filling in for people."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from threadline.capabilities.foundation.definitions import Definitions
from threadline.capabilities.foundation.definitions.document import BY_HAND, DRAFT
from threadline.capabilities.reach.mail.blocks import mjml_of
from threadline.capabilities.reach.mail.definition import FILE, LINKS, SEEN, SHARED, Mail, Template
from threadline.capabilities.reach.mail.filling import Filled, Filling, faulty_styles, fill, paths_in
from threadline.kernel.applied import DefinitionHistory
from threadline.kernel.canonical import canonical_json
from threadline.kernel.confined import Confined, Exceeded
from threadline.kernel.errors import InvalidDefinition, InvalidValue, NotFound
from threadline.kernel.limits import MAIL_TEMPLATE_BYTES_MAX
from threadline.kernel.policy import Declared
from threadline.kernel.suggestion import nearest, suggestion
from threadline.kernel.templating import FUNCTIONS, joined

CONSENT = "consent"
"""The section in which topics are declared."""
SUBJECTS_CACHED = 100
"""Other subjects of one template: those of the arms of broadcasts and journeys."""

_REFERENCE = re.compile(r"\{%-?\s*(extends|include|import|from)\s+([^%\s]+)")
_QUOTED = re.compile(r"""(["'])([^"']+)\1""")
_MJML_TAG = re.compile(r"</?(mj[a-z-]*)")
_MJML_TAGS = frozenset(
    {
        "mjml",
        "mj-accordion",
        "mj-accordion-element",
        "mj-accordion-text",
        "mj-accordion-title",
        "mj-all",
        "mj-attributes",
        "mj-body",
        "mj-breakpoint",
        "mj-button",
        "mj-carousel",
        "mj-carousel-image",
        "mj-class",
        "mj-column",
        "mj-divider",
        "mj-font",
        "mj-group",
        "mj-head",
        "mj-hero",
        "mj-html-attribute",
        "mj-html-attributes",
        "mj-image",
        "mj-navbar",
        "mj-navbar-link",
        "mj-preview",
        "mj-raw",
        "mj-section",
        "mj-selector",
        "mj-social",
        "mj-social-element",
        "mj-spacer",
        "mj-style",
        "mj-table",
        "mj-text",
        "mj-title",
        "mj-wrapper",
    }
)


class Templates:
    """What is declared about mail, with its templates compiled."""

    def __init__(self, mail: Mail, made: Mapping[str, Compiled]) -> None:
        self.mail = mail
        self._made = dict(made)

    def __iter__(self) -> Iterator[Compiled]:
        return iter(self._made.values())

    def named(self, name: str) -> Compiled:
        """The template in force of this name; raises `NotFound` with the nearest one."""
        made = self._made.get(name)
        if made is None:
            hint = suggestion(name, self._made) if self._made else "none is declared"
            raise NotFound(f"there is no mail template {name[:64]!r}; {hint}")
        return made

    def of_version(self, history: DefinitionHistory, name: str, version: str) -> Compiled:
        """A template as it was in a version; raises `NotFound` if that was never declared."""
        current = self._made.get(name)
        if current is not None and current.version == version:
            return current
        number = number_of(version)
        packed = history.content(SHARED, name, number) if number else None
        if packed is None:
            raise NotFound(f"the mail template {name[:64]!r} never had the version {version[:64]!r}")
        template = Template(name=name, subject="") if current is None else current.template
        return restored(template, packed)

    @property
    def declared(self) -> tuple[Declared, ...]:
        """Each template as a version that never changes: its number is its hash."""
        return tuple(
            Declared(made.template.name, number_of(made.version), made.sources.packed, made.template.place)
            for made in self._made.values()
        )

    def reread(self, name: str) -> Compiled:
        """The template of files as they are now, while they are being written. Raises `InvalidDefinition`."""
        template = self.named(name).template
        return compiled(template, read_sources(template))


def number_of(version: str) -> int:
    """The number under which a version is kept; 0 for what is none."""
    try:
        return int(version, 16) if len(version) == 14 else 0
    except ValueError:
        return 0


def version_of(number: int) -> str:
    """The version that a number stands for; empty for 0."""
    return f"{number:014x}" if number else ""


def read_templates(definitions: Definitions, mail: Mail) -> Templates:
    """The declared templates. Problems are noted, not raised."""
    made = {}
    for name, template in sorted(mail.templates.items()):
        try:
            made[name] = compiled(template, read_sources(template))
        except InvalidDefinition as error:
            definitions.problems += str(error).split("\n")
    return Templates(mail, made)


# --- sources -----------------------------------------------------------------------------------


class Sources(NamedTuple):
    """What a template is made of, as it was read."""

    parts: Mapping[str, str]
    """Part (``subject``, ``html``, ``mjml``, ``text``; in another language ``de/subject``) -> name of its source."""
    texts: Mapping[str, str]
    """Name -> source; of a file the name is its path beside the definitions."""
    places: Mapping[str, tuple[str, int]]
    """Name -> file and the number of the line before its first."""
    lines: Mapping[str, Sequence[str]] = {}
    """Name -> file and line of each line, of what is made of blocks."""
    fallback: str = ""
    """The language of the parts without one; empty where there is only this one."""
    trait: str = ""
    """The trait that says which language somebody gets."""

    @property
    def version(self) -> str:
        """A hash of all of it."""
        return blake2b(self.packed, digest_size=7).hexdigest()

    @property
    def packed(self) -> bytes:
        """All of it, to be kept."""
        chosen = {"fallback": self.fallback, "trait": self.trait} if self.fallback else {}
        return canonical_json({"parts": dict(self.parts), "texts": dict(self.texts), **chosen})

    @property
    def languages(self) -> tuple[str, ...]:
        """Those that there are, the fallback first; none where the template names none."""
        others = {part.partition("/")[0] for part in self.parts if "/" in part}
        return (self.fallback, *sorted(others)) if self.fallback else ()

    def parts_in(self, language: str) -> dict[str, str]:
        """Part -> the name of its source, in a language; empty for the fallback."""
        before = f"{language}/" if language else ""
        named = {part: name for part, name in self.parts.items() if part.startswith(before)}
        return {part.removeprefix(before): name for part, name in named.items() if language or "/" not in part}

    def texts_in(self, language: str) -> dict[str, str]:
        """The sources without those of other languages; what they include stays."""
        others = {*self.parts.values()} - {*self.parts_in(language).values()}
        return {name: text for name, text in self.texts.items() if name not in others}

    def place(self, name: str, line: int) -> str:
        """File and line of a line of a source."""
        if lines := self.lines.get(name):
            return lines[min(line, len(lines)) - 1]
        file, before = self.places.get(name, (name, 0))
        return f"{file}:{before + line}"


def read_sources(template: Template) -> Sources:
    """Read the files of a template. Raises `InvalidDefinition` with every problem, one a line."""
    file_of_definition = template.place.rpartition(":")[0]
    folder = Path(file_of_definition).parent
    parts: dict[str, str] = {}
    texts: dict[str, str] = {}
    places: dict[str, tuple[str, int]] = {}
    lines: dict[str, Sequence[str]] = {}
    problems: list[str] = []
    waiting: list[tuple[str, str]] = []
    languages = template.languages
    for language, wording in template.wordings.items():
        if wording.blocks:
            part = f"{language}/mjml" if language else "mjml"
            name = parts[part] = f"{template.name}: {f'{language}/' if language else ''}blocks"
            spoken = language or (languages.fallback if languages is not None else "")
            made = mjml_of(wording.blocks, wording.preheader, template.accent, spoken)
            texts[name] = "\n".join(line for line, _ in made)
            lines[name] = [place or wording.place or template.place for _, place in made]
    for part, (source, place) in _written_parts(template):
        if not part.endswith("subject") and FILE.fullmatch(source):
            parts[part] = posixpath.normpath(source)
            waiting.append((parts[part], place))
        else:
            # Without a slash: what it includes is named from the folder of the definitions.
            parts[part] = f"{template.name}: {part}"
            texts[parts[part]] = source
            file, _, line = place.rpartition(":")
            places[parts[part]] = (file, int(line or 1) - (0 if "\n" in source else 1))
            waiting += _references(source, "", place, problems)
    while waiting:
        name, place = waiting.pop()
        if name in texts:
            continue
        try:
            # Nothing outside the folder of the definitions becomes part of a mail.
            if name.startswith(("/", "..")):
                raise OSError("it lies outside the folder of the definitions")
            if file_of_definition in (BY_HAND, DRAFT):
                raise OSError("a template that is made by hand lies in no folder; write the text itself")
            texts[name] = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            problems.append(f"{place}: template {template.name!r}: file {name!r} cannot be read: {why}")
            continue
        places[name] = (str(folder / name), 0)
        waiting += _references(texts[name], name, str(folder / name), problems)
    if sum(len(text.encode()) for text in texts.values()) > MAIL_TEMPLATE_BYTES_MAX:
        problems.append(f"{template.place}: template {template.name!r} has more than {MAIL_TEMPLATE_BYTES_MAX:,} bytes")
    if problems:
        raise InvalidDefinition("\n".join(problems))
    if languages is None:
        return Sources(parts, texts, places, lines)
    return Sources(parts, texts, places, lines, languages.fallback, languages.trait)


def _written_parts(template: Template) -> Iterator[tuple[str, tuple[str, str]]]:
    """What is filled in of all languages, but for blocks: part -> (its source or file, file and line of it)."""
    for language, wording in template.wordings.items():
        for part, written in wording.parts.items():
            yield (f"{language}/{part}" if language else part), written


def language_of(written: Any, known: Sequence[str]) -> str:
    """Which of some languages somebody gets whose own is written such as ``de``, ``de-AT`` or ``de_AT``: the same, else
    the nearest that is less exact (RFC 4647, 3.4); empty for none."""
    by_tag = {language.casefold(): language for language in known}
    tag = written.strip().partition(".")[0].replace("_", "-").casefold() if isinstance(written, str) else ""
    while tag and tag not in by_tag:
        tag = tag.rpartition("-")[0]
    return by_tag.get(tag, "")


def _references(text: str, name: str, place: str, problems: list[str]) -> list[tuple[str, str]]:
    """The files that a source extends, includes or imports, each with the place where it says so."""
    references = []
    for match in _REFERENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        here = f"{place}:{line}" if name else place
        quoted = _QUOTED.fullmatch(match[2])
        if quoted is None:
            problems.append(f"{here}: `{match[1]}` needs the name of a file in quotes, and {match[2][:80]} is none")
        else:
            references.append((joined(quoted[2], name), here))
    return references


# --- one template ------------------------------------------------------------------------------


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

    def __init__(self, template: Template, sources: Sources, language: str = "") -> None:
        self.template = template
        self.sources = sources
        self.version = sources.version
        self.language = language
        """The language that is filled in; empty for the fallback."""
        self._in_language: dict[str, Compiled] = {}
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
            texts = {**self.sources.texts, self.sources.parts_in(self.language)["subject"]: subject}
            made = Compiled(self.template, self.sources._replace(texts=texts), self.language)
            made.version = self.version
            if len(self._with_subject) >= SUBJECTS_CACHED:
                self._with_subject.clear()
            self._with_subject[subject] = made
        return made

    def in_language(self, language: str) -> Compiled:
        """The same in a language, of the same version; one that there is not is the fallback."""
        languages = self.sources.languages
        language = "" if language not in languages[1:] else language
        if language == self.language:
            return self
        if language not in self._in_language:
            made = self._in_language[language] = Compiled(self.template, self.sources, language)
            made.version = self.version
        return self._in_language[language]

    def language_for(self, traits: Mapping[str, Any]) -> str:
        """The language that somebody with these traits gets; empty where the template has but one."""
        languages = self.sources.languages
        return language_of(traits.get(self.sources.trait), languages) or self.sources.fallback

    def known_language(self, language: str) -> str:
        """The language, if there is the template in it, or none. Raises `InvalidValue`."""
        languages = self.sources.languages
        if language and language not in languages:
            hint = suggestion(language, languages) if languages else "it names none under `languages`"
            raise InvalidValue(f"this template is not there in {language!r}; {hint}", param="language")
        return language

    @property
    def examples(self) -> dict[str, Any]:
        """The values of variables that have an example."""
        examples = {name: variable.example for name, variable in self.template.variables.items()}
        return {name: example for name, example in examples.items() if example is not None}

    @property
    def shown_language(self) -> str:
        """The language that is filled in, by its name; empty where the template has but one."""
        return self.language or self.sources.fallback

    def filling(self, values: Mapping[str, Any]) -> Filling:
        """What it is filled in with for somebody."""
        return Filling(self.sources.parts_in(self.language), self.sources.texts, LINKS, values)

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
        if any(part.rpartition("/")[2] == "mjml" for part in self.sources.parts):
            yield from self._unknown_tags()
        plain = {name for part, name in self.sources.parts.items() if part.rpartition("/")[2] in ("text", "subject")}
        names = [name for name in self.sources.texts if name not in plain]
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
        return frozenset(path for name in self.sources.texts_in(self.language) for path in self._paths(name))

    def _paths(self, name: str) -> set[str]:
        """What a source takes from the context. Raises `InvalidDefinition` for what is no template."""
        paths = paths_in(self.sources.texts, name)
        if isinstance(paths, Filled):
            place = self.sources.place(name, paths.line)
            raise InvalidDefinition(f"{place}: template {self.template.name!r}: {paths.failure}")
        return {path for path in paths if path.partition(".")[0] not in FUNCTIONS}


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
    chosen = {"fallback": stored.get("fallback", ""), "trait": stored.get("trait", "")}
    return Compiled(template, Sources(stored["parts"], stored["texts"], {}, **chosen))


def _line_of(source: str, path: str) -> int:
    """The line of a source on which a path stands first; 1 if it is written in another way."""
    for steps in (path, path.partition(".")[0]):
        match = re.search(rf"\{{[\{{%][^}}]*?(?<![\w.]){re.escape(steps)}(?!\w)", source)
        if match is not None:
            return source.count("\n", 0, match.end()) + 1
    return 1
