"""Plain data as YAML that says the same when it is read."""

from __future__ import annotations

import re
from math import inf
from typing import Any

import yaml

_RARE_BREAK = re.compile("[\x85\u2028\u2029]")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """What stands twice is written twice: a value may be changed without another one."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Items of a list stand further in than its key."""
        super().increase_indent(flow, False)

    def analyze_scalar(self, scalar: str) -> Any:
        """Line breaks other than the usual ones are escaped: as they are, PyYAML writes what it reads as blanks."""
        analysis = super().analyze_scalar(scalar)
        if _RARE_BREAK.search(scalar):
            analysis.allow_flow_plain = analysis.allow_block_plain = False
            analysis.allow_single_quoted = analysis.allow_block = False
        return analysis


def yaml_of(value: Any, *, width: float = 100, is_compact: bool = False) -> str:
    """The text, with keys in their order; ``is_compact`` writes what is innermost in one line."""
    text: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=width,
        default_flow_style=None if is_compact else False,
    )
    return text


def text_of(value: str) -> str:
    """A text; one of several lines as it reads, line for line."""
    style = "|" if "\n" in value.rstrip("\n") and not value.endswith("\n\n") else None
    written: str = yaml.dump(value, Dumper=_Dumper, allow_unicode=True, width=inf, default_style=style)
    return written.removesuffix("...\n")
