"""What the store has of a person about flags."""

from __future__ import annotations

from threadline.kernel.personal import PersonFile, joined, shown_events, shown_views
from threadline.kernel.sql_view import SqlView
from threadline_flags.events import FLAG_EXPOSED
from threadline_flags.projection import NAME

FLAGS_FILE = PersonFile(
    "flags",
    "What you were shown",
    "Variants of features that you were shown, and when.",
    joined(shown_views(NAME), shown_events(FLAG_EXPOSED)),
    (NAME,),
)
FLAG_EXPOSURES = SqlView(
    "flag_exposures",
    "What people were shown, once a day: person, day, flag, variant and reason.",
    "SELECT person, day, occurred_at, json_extract_string(properties, '/flag') AS flag, "
    "json_extract_string(properties, '/variant') AS variant, json_extract_string(properties, '/reason') AS reason "
    "FROM events WHERE type = 'flag_exposed'",
)
