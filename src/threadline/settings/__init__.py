"""Settings: one typed value that says how this process works.

What it promises: every setting has a type, a default, a unit and a reason; arguments beat the environment, which beats
`threadline.yaml`; a name that is none is refused with the nearest that is; nothing else reads the environment, and
nothing that is secret is shown.
"""

from threadline.settings.declared import (
    PREFIX,
    SETTINGS_SECTION,
    Described,
    Settings,
    cache_lifetimes,
    describe,
    without_secret,
)
from threadline.settings.loading import definition_files, definitions_file, from_environment, load

__all__ = [
    "PREFIX",
    "SETTINGS_SECTION",
    "Described",
    "Settings",
    "cache_lifetimes",
    "definition_files",
    "definitions_file",
    "describe",
    "from_environment",
    "load",
    "without_secret",
]
