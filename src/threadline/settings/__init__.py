"""Settings: one typed value that says how this process works.

The configuration, from arguments, environment variables and a YAML file.

    >>> from threadline.settings import load
    >>> load({"store": "shop.db"}).store
    'shop.db'
    >>> load({"stor": "shop.db"})
    Traceback (most recent call last):
    threadline.kernel.errors.InvalidSetting: ...did you mean...

What it promises: every setting has a type, a default, a unit and a reason; arguments beat the environment, which beats
`threadline.yaml`; a name that is none is refused with the nearest that is; nothing else reads the environment, and
nothing that is secret is shown. docs/settings.md lists them all, as `describe` does.
"""

from threadline.settings.declared import (
    PREFIX,
    SETTINGS_SECTION,
    Described,
    Settings,
    cache_lifetimes,
    describe,
    second_factor_roles,
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
    "second_factor_roles",
    "without_secret",
]
