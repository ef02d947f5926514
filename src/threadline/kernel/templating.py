"""The language of templates, minijinja, within the bounds that whoever writes one has.

Mails and the requests of webhooks are written in it. Filling one in is confined work; see `threadline.kernel.confined`.
It imports little: the process that does that work starts with this.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any

from threadline.kernel.limits import MAIL_CHAIN_MAX

FUEL = 200_000
"""Steps of one template: a loop over a list that somebody else has made long ends."""
FUNCTIONS = frozenset({"range", "dict", "namespace", "loop", "super", "self", "caller", "debug"})
"""Names of the language itself, which no value has to bring."""
BLOCK = re.compile(r"""\{[{%]((?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|.)*?)(?:[%}]\}|\Z)""", re.DOTALL)
"""An expression or a statement; one that has no end goes to the end of the source."""
_QUOTED = re.compile(r"""\"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL)
_LINK_OF_A_CHAIN = re.compile(r"[-+*/%~|(\[<>=]|\.(?!\d)|\b(?:not|and|or|if|in|is)\b")
_ELIF = re.compile(r"\{%[-+]?\s*elif\b")


class TemplateMistake(Exception):
    """A template that cannot be read, or not be filled in with these values."""

    def __init__(self, failure: str, source: str, line: int) -> None:
        super().__init__(failure)
        self.failure = failure
        self.source = source
        """The name of the source that failed."""
        self.line = line


class TemplateSources:
    """Sources by name, ready to be filled in."""

    def __init__(
        self,
        texts: Mapping[str, str],
        *,
        escaped: bool,
        finalizer: Callable[[Any], Any] | None = None,
        filters: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        """``escaped`` for HTML; ``finalizer`` writes the value of each expression."""
        from minijinja import Environment

        self._texts = texts
        self._environment = Environment(
            loader=texts.get,
            auto_escape_callback=lambda name: escaped,
            path_join_callback=joined,
            finalizer=finalizer,
            fuel=FUEL,
            undefined_behavior="strict",
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            filters={"default": _default, "d": _default, **(filters or {})},
        )

    def filled(self, name: str, values: Mapping[str, Any]) -> str:
        """A source with these values. Raises `TemplateMistake`."""
        from minijinja import TemplateError

        try:
            return self._environment.render_template(name, **values)
        except TemplateError as error:
            raise TemplateMistake(error.detail or error.kind, error.name or name, error.line or 1) from None

    def paths(self, name: str) -> set[str]:
        """What a source takes from the values: ``person.traits.plan``. Raises `TemplateMistake` for no template.

        The parser takes time in proportion to the source and has a limit on nesting, but none on chains such as
        ``1 + 1 + 1``, at whose end it calls itself for each; with a limit on them this is done anywhere.
        """
        from minijinja import TemplateError

        text = self._texts[name]
        if line := _line_of_chain(text):
            raise TemplateMistake(f"this has more than {MAIL_CHAIN_MAX:,} operators in a row", name, line)
        try:
            return set(self._environment.undeclared_variables_in_str(text, nested=True))
        except TemplateError as error:
            raise TemplateMistake(error.detail or error.message.splitlines()[0], name, error.line or 1) from None


def unescaped(value: Any) -> Any:
    """A value that is written as it is where others are escaped."""
    from minijinja import safe

    return safe(value)


def joined(name: str, parent: str) -> str:
    """The name of a file that another names: relative to it, as a link in a page is."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(parent), name))


def _line_of_chain(source: str) -> int:
    """The line of an expression that is too long a chain, or of a condition with too many branches; 0: none."""
    for block in BLOCK.finditer(source) if len(source) > MAIL_CHAIN_MAX else ():
        links = _LINK_OF_A_CHAIN.findall(_QUOTED.sub("", block[1])) if len(block[1]) > MAIL_CHAIN_MAX else ()
        if len(links) > MAIL_CHAIN_MAX:
            return source.count("\n", 0, block.start()) + 1
    branches = [match.start() for match in _ELIF.finditer(source)] if "elif" in source else []
    return source.count("\n", 0, branches[MAIL_CHAIN_MAX]) + 1 if len(branches) > MAIL_CHAIN_MAX else 0


def _default(value: Any, default: Any = "", falsy: bool = False) -> Any:
    """``default`` where there is nothing to say. The filter of Jinja lets a name that was sent empty through, and a
    mail begins with "Hi ,"; with ``falsy`` 0 and false are nothing as well, as in Jinja."""
    is_nothing = value is None or (isinstance(value, str) and not value.strip()) or (falsy and not value)
    return default if is_nothing else value
