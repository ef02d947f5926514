"""A limit on everything, in one place. The store's are DynamoDB's, the narrowest, and hold on every store."""

from __future__ import annotations

# --- the store port -------------------------------------------------------------------------
BATCH_WRITES_MAX = 100
"""Writes in one atomic batch; an event counts as two (itself and its unique id)."""
BATCH_BYTES_MAX = 4_000_000
ITEM_BYTES_MAX = 400_000
KEY_BYTES_MAX = 1_024
PAGE_ITEMS_MAX = 1_000
ERASED_IDS_MAX = 1_000
"""Events that one call takes out of the log."""
ITEM_BEGINS_MAX = 1 << 48
"""The highest version with which an item may begin."""

# --- events ---------------------------------------------------------------------------------
EVENT_BYTES_MAX = 32 * 1_024
"""One event as it came, bytes; Segment's own limit."""
CLOUDEVENT_BYTES_MAX = 64 * 1_024
"""One CloudEvent, bytes; the specification asks receivers to take this much."""
LOGGED_EVENT_BYTES_MAX = CLOUDEVENT_BYTES_MAX * 4 // 3 + 16 * 1_024
"""One event as the log keeps it, bytes, whichever way it came: the largest that a wire takes, in Base64 where it is no
text, with whose it is and what was noted on the way in."""
REQUEST_BYTES_MAX = 4 * 1_024 * 1_024
"""The body of any request, before and after decompression, bytes."""
LAMBDA_ANSWER_BYTES_MAX = 6 * 1_024 * 1_024
"""What a function of AWS Lambda may answer, bytes of JSON; the service's own limit."""
BATCH_EVENTS_MAX = 2_500
"""Events of one request, good or bad. One of more is refused whole, with nothing taken; Segment's own limit."""
JSON_DEPTH_MAX = 64
EVENT_KEY_LENGTH_MAX = 100
"""messageId and the like, as a wire takes them, characters."""
LOGGED_KEY_LENGTH_MAX = 400
"""A key as the log takes it: those of Threadline's own events name a cause and more."""
EVENT_TYPE_LENGTH_MAX = 200
IDENTIFIER_LENGTH_MAX = 512
IDENTIFIER_KIND_LENGTH_MAX = 64
WORKSPACE_LENGTH_MAX = 100
IDENTIFIERS_PER_EVENT_MAX = 16
CASCADE_EVENTS_MAX = 32
"""Events that policies may add because of one event."""
SENDING_SECONDS_MAX = 50 * 60
"""A client's clock that is behind by up to so much may be right: its message was long under way, or is sent again with
the `sentAt` of the first attempt. Local time that is sent as UTC is off by more: no zone is nearer than an hour."""
CLAIM_KEYS_MAX = 32
"""Keys that one effect may claim."""
FUTURE_MAX_SECONDS = 24 * 3_600
"""A time further ahead of the clock than this is clamped to the time of receipt and marked."""
BELIEVED_FROM_SECONDS = 631_152_000
"""1990-01-01, in seconds since 1970: a time before this is clamped likewise, unless the event is imported history.
Clocks that were never set say 1970, and the zero times of Go and .NET the year 1."""

# --- schemas of events ----------------------------------------------------------------------
EVENT_SCHEMAS_MAX = 1_000
SCHEMA_NODES_MAX = 2_000
"""Values written in one schema."""
SCHEMA_DEPTH_MAX = 64
"""Levels of one schema, references included."""
SCHEMA_PARTS_MAX = 10_000
"""Schemas that one is made of, where a part that is referred to counts each time."""
SCHEMA_PATTERN_BYTES_MAX = 1 << 20
"""What one compiled regular expression may take."""

# --- lake -----------------------------------------------------------------------------------
LAKE_COLUMNS_MAX = 1_000
"""Typed columns of one lake; further properties are in the JSON alone."""

# --- people ---------------------------------------------------------------------------------
TRAITS_PER_PERSON_MAX = 500
TAGS_PER_PERSON_MAX = 500
GROUPS_PER_PERSON_MAX = 200
THREADS_PER_PERSON_MAX = 64
EVENT_TYPES_COUNTED_MAX = 200
"""Event types that are counted by name for one person; further ones are counted together."""

# --- features -------------------------------------------------------------------------------
FEATURES_MAX = 1_000
WINDOW_BUCKET_ENTRIES_MAX = 8
"""Entries of one window bucket that are kept one by one; a fuller bucket keeps its summary."""
DISTINCT_VALUES_MAX = 1_000
"""Different values of a lifetime that are counted exactly; one more is kept, so that "full" and "over" differ."""

# --- definitions ----------------------------------------------------------------------------

DEFINITIONS_BY_HAND_BYTES_MAX = 1_000_000
"""The text of all definitions that are made by hand, bytes."""
DEFINITIONS_DEPTH_MAX = 250
"""Lists and mappings of YAML inside one another; no definition has so many."""
DEFINITIONS_REPEATED_MAX = 100_000
"""Values that the aliases of one file of YAML stand for, beside those that are written."""
DEFINITIONS_NUMBER_LENGTH_MAX = 1_000
"""Characters of a number; a longer one counts as a text."""

# --- conditions and segments ------------------------------------------------------------------
CONDITIONS_MAX = 50
"""Conditions in one tree."""
CONDITION_DEPTH_MAX = 5
"""Levels of `all`, `any` and `not` in one tree."""
CONDITION_VALUES_MAX = 1_000
"""Values that one condition may list."""
CONDITION_TEXT_LENGTH_MAX = 1_000
"""A text to compare with, a path, a regular expression: characters."""
TRACE_LAYOUTS_MAX = 64
"""Ways in which the conditions of one tree may have ended whose traces are laid out ready to be filled in."""
PROPOSALS_MAX = 200
"""Definitions that are proposed in a workspace."""
SEGMENTS_MAX = 200

# --- consent ----------------------------------------------------------------------------------
TOPICS_MAX = 50
"""Topics that people may subscribe to."""
SUPPRESSIONS_PER_CALL_MAX = 1_000
"""Addresses that one call may suppress."""

# --- rules ------------------------------------------------------------------------------------
RULES_MAX = 20_000
"""Rules of one workspace that are in force, those of the definitions included."""
RULE_SETS_MAX = 200
ACTIONS_MAX = 20
"""Actions of one rule."""
RULE_NAME_LENGTH_MAX = 200
RULE_DESCRIPTION_LENGTH_MAX = 2_000
RULE_BYTES_MAX = 64 * 1_024
"""One version of a rule as canonical JSON."""
MODEL_NODES_MAX = 200
MODEL_EXPRESSIONS_MAX = 5_000
"""Cells and expressions of a decision model."""
MODEL_INPUTS_MAX = 100
MODEL_DEPTH_MAX = 64
"""Brackets inside one another in an expression of a model."""
MODEL_WORK_MAX = 1_000_000
"""Elements that a model may go through for one decision, counted before it is evaluated: about a second at most."""
DECISION_VALUE_BYTES_MAX = 1_000
"""What a rule has read, in a decision, as canonical JSON; of what is longer the decision keeps the hash."""

# --- webhooks ---------------------------------------------------------------------------------
DESTINATIONS_MAX = 100
DESTINATION_SECRETS_MAX = 8
DESTINATION_PAYLOAD_NAMES_MAX = 200
WEBHOOKS_AT_ONCE_MAX = 32
"""Calls that one destination gets at the same time."""
WEBHOOK_URL_LENGTH_MAX = 2_000
WEBHOOK_TEMPLATE_LENGTH_MAX = 20_000
"""Characters of the body that somebody writes."""
WEBHOOK_BODY_BYTES_MAX = 1_000_000
"""A body when it is filled in."""
WEBHOOK_HEADERS_MAX = 20
WEBHOOK_HEADER_LENGTH_MAX = 4_000
WEBHOOK_RESULTS_MAX = 10
"""Values that are taken from an answer."""
WEBHOOK_RESULT_BYTES_MAX = 1_000
"""One of them, as JSON."""
WEBHOOK_ANSWER_BYTES_MAX = 64_000
"""What is read of an answer from which something is taken."""

# --- mail -----------------------------------------------------------------------------------
MAIL_SENDERS_MAX = 50
MAIL_TEMPLATES_MAX = 500
MAIL_VARIABLES_MAX = 100
"""Variables of one template."""
MAIL_TEMPLATE_BYTES_MAX = 300_000
"""One template with all that it includes; a version of it is one item of the store."""
MAIL_PART_BYTES_MAX = 1_000_000
"""One part of a mail as it is sent, before it is encoded."""
MAIL_CHAIN_MAX = 1_000
"""Operators and filters in one expression of a template: the library calls itself for each, in places without a limit
of its own."""
MAIL_DEPTH_MAX = 500
"""Elements of MJML inside one another; the library that reads it calls itself for each."""
MAIL_BLOCKS_MAX = 100
"""Blocks of one mail, or of one of its columns."""
MAIL_COLUMNS_MAX = 4
MAIL_LANGUAGES_MAX = 50
"""Languages of one template, beside the first."""
PICTURE_BYTES_MAX = 2 * 1_024 * 1_024
"""One picture of a mail; as base64 in JSON it stays below `REQUEST_BYTES_MAX`, and below `BATCH_BYTES_MAX`."""
PICTURE_PIXELS_MAX = 4_000
"""The width of a picture, and its height."""
PICTURES_MAX = 500
"""Pictures of one workspace."""
MAIL_CAPS_MAX = 10
MAIL_CAP_MAX = 50
"""Mails that a frequency cap may allow."""
MAIL_WARM_UP_DAYS_MAX = 90
MAIL_FETCH_REPEATS_MAX = 5
"""Requests for one picture or link by one program within a day that are events; more are counted."""
MAIL_FETCHES_MAX = 100
"""Requests for pictures and links of one person's mails within an hour that are events; more are counted."""
MAIL_LEDGER_MAX = 100
"""Mails of one person that the ledger keeps with their status, the newest; all of them stay in the log."""

# --- confined work --------------------------------------------------------------------------

CONFINED_CPU_SECONDS_MAX = 5.0
"""Processor time of one piece, such as one mail that is filled in; an ordinary one takes less than a thousandth."""
CONFINED_MEMORY_BYTES_MAX = 512 << 20
"""What its process may take beside its program."""

# --- memory ---------------------------------------------------------------------------------
FACT_KEY_LENGTH_MAX = 128
"""Characters of a fact's key."""
FACT_VALUE_BYTES_MAX = 400
"""One value in a fact, bytes as MessagePack or UTF-8: all facts of a person share one item with all else."""
FACT_EVENTS_MAX = 3
"""Ids of a fact's newest events that are kept with it; the log has the rest."""
FACT_VOICES_MAX = 3
"""Sources whose words on one fact are told apart."""
FACT_ENTRIES_MAX = 100
"""Entries of one event's list that make facts; further ones are left aside."""
FACT_RETRACTIONS_MAX = 16
"""Retractions of one fact that are remembered, the newest."""
FACTS_RETRACTED_MAX = 300
"""Facts of one person that have retractions."""
FACTS_OF_DERIVATION_MAX = 200
"""What `most` of a derivation may be."""
DERIVATIONS_MAX = 200

# --- points and leaderboards -----------------------------------------------------------------
POINTS_RULES_MAX = 100
"""Rules of one table of points."""
POINTS_ANOMALIES_MAX = 50
"""Anomalies that are remembered of one person: the newest; all of them stay in the log."""
BOARD_ROWS_PER_PERSON_MAX = 28
"""Rows that all leaderboards together may keep of one person: a merge replaces those of two by those of one, in a batch
of `BATCH_WRITES_MAX`."""
BOARDS_COUNTED_MAX = 64
"""Boards (with period and scope) whose scores are counted in memory at a time."""

# --- streaks --------------------------------------------------------------------------------
STREAKS_MAX = 50
STREAK_TIMES_MAX = 31
"""How often a period may ask for; the state keeps one set of periods for each."""
STREAK_GRACE_MAX_SECONDS = 12 * 3_600
STREAK_MILESTONES_MAX = 50
AMNESTY_DAYS_MAX = 366
"""Days of one amnesty."""

# --- journeys -------------------------------------------------------------------------------
JOURNEYS_MAX = 100
JOURNEY_STEPS_MAX = 200
"""Steps of one journey."""
JOURNEY_MAILS_IN_A_ROW_MAX = 8
"""Mails and actions of one journey without a wait between them: an event causes no more than fit into its commit."""
JOURNEY_ACTION_BYTES_MAX = 8_000
"""What one action of a step is given, as JSON."""
JOURNEY_VARIABLES_MAX = 20
JOURNEY_VARIABLE_BYTES_MAX = 400
"""One variable of a run, as JSON: all runs of a person share one item with all else."""

# --- alerts -----------------------------------------------------------------------------------
ALERTS_MAX = 200
"""Alerts of one workspace that are in force or lie ahead: whoever reads is put to the conditions of all of them."""
ALERT_VERSIONS_MAX = 1_000_000
ALERT_TITLE_LENGTH_MAX = 200
ALERT_BODY_LENGTH_MAX = 4_000
ALERT_LINK_LENGTH_MAX = 2_000
ALERT_AUDIENCE_NAMES_MAX = 100
"""Tags, or segments, of one alert."""
ALERT_DISMISSALS_MAX = 500
"""Dismissed alerts that are remembered of one person, those with the smallest ids."""

# --- GraphQL ----------------------------------------------------------------------------------
GRAPHQL_BYTES_MAX = 64 * 1_024
"""A request, its variables included."""
GRAPHQL_TOKENS_MAX = 2_000
GRAPHQL_FIELDS_MAX = 400
"""Fields of a document, those of a fragment wherever it is spread. Checking one takes up to the square of that."""
GRAPHQL_DEPTH_MAX = 12
GRAPHQL_COST_MAX = 1_000
"""Operations that a document may run; a hundred entries of a page count as one more."""
GRAPHQL_DOCUMENTS_MAX = 200
"""Documents that are remembered as valid, the last ones."""

# --- MCP --------------------------------------------------------------------------------------
MCP_REQUEST_BYTES_MAX = 256 * 1_024
"""A message of a client."""
MCP_ANSWER_BYTES_MAX = 24_000
"""The answer of a tool or a resource, as JSON: about 8,000 tokens. What does not fit is had by a further call."""
MCP_ENTRIES = 20
"""Entries of a list for callers who give no `limit`."""
MCP_CONFIRMATION_SECONDS = 600
"""How long a change that was shown can be confirmed."""
MCP_CALLS_PER_SECOND = 50
"""Calls of tools by one credential."""
MCP_CALLS_BURST = 200

# --- retention --------------------------------------------------------------------------------
RETENTION_RULES_MAX = 100
RETENTION_TYPES_MAX = 1_000
RETENTION_DAYS_MAX = 36_500

# --- reading --------------------------------------------------------------------------------
EVENTS_PAGE_MAX = 1_000
TRAINING_ROWS_MAX = 1_000_000
EXPORT_FILE_BYTES_MAX = 2_000_000_000
"""One file in the archive of a person: beyond 2 GiB it would take a form of ZIP that not every program reads."""

# --- a server's work, by class --------------------------------------------------------------
READS_WAITING_MAX = 1_000
"""Short reads that wait for a thread; further ones are told to come again, as in each other class."""
PAGES_WAITING_MAX = 200
WRITES_WAITING_MAX = 1_000
QUESTIONS = 2, 16
"""Reads that may take seconds, as analytics do: how many are answered at once, and how many wait. One may be answered
in this process and one in that of analytics; with more, each takes as much longer, and so does all else."""
UPKEEP = 2, 8
"""Changes that go through everybody."""
PUBLIC_CALLS = 4, 200
"""What anybody may ask for: links in mails, pages of preferences, notifications of providers."""
SIGN_INS = 1, 8
"""Passwords that are hashed at once, 0.2 s of a core and 16 MiB each, and those that wait."""

# --- search ---------------------------------------------------------------------------------
SEARCH_TEXT_LENGTH_MAX = 8_000
"""What an index takes of the text of one event, characters."""
SEARCH_LINKS_MAX = 16
"""Ids that one event may name, for `search correlate`; what names more is found by the first."""
SEARCH_WORDS_MAX = 32
"""Words of one query."""
SEARCH_QUERY_LENGTH_MAX = 500
SEARCH_CATCH_UP_EVENTS = 2_000
"""Entries of the feed that an index takes in before it answers; if there are more, the answer says so."""
SEARCH_FACETED_MAX = 2_000
"""The newest matches, of which facets are counted."""
SEEN_TYPES_MAX = 10_000
"""Event types of a log that are listed."""
SEEN_TYPES_EVENTS_MAX = 10_000
"""Events that are read to list their types where no search index has them."""
SEEN_TAGS_MAX = 500
"""Tags that are offered, and among which one is sought that is near to one that nobody has: each is a range read."""
CORRELATED_EVENTS_MAX = 500
"""Events of one answer of `search correlate`."""

# --- what is sent because of what was so before ---------------------------------------------
UNASKED_EFFECTS_MAX = 100
"""Mails, webhooks and the like that an import or changed definitions may cause without being confirmed."""
UPLOAD_BYTES_MAX = 32 * 1024 * 1024
"""Of a file that is uploaded to be imported."""
UPLOADS_MAX = 8
"""Files that a server holds to be imported; the oldest that nobody reads makes room."""
FORETOLD_ROWS_MAX = 50_000
"""Rows of a file that are rehearsed, all of them in memory, to say what the import causes."""

# --- accounts -------------------------------------------------------------------------------
ACCOUNTS_MAX = 1_000
"""Accounts of one workspace."""
ACCOUNT_NAME_LENGTH_MAX = 100
PASSWORD_LENGTH_MIN = 12
PASSWORD_LENGTH_MAX = 1_000
SIGN_IN_FAILURES_MAX = 10
"""Failures to sign in with one name from one address within 15 minutes; then nobody signs in with it from there until
the first is older. From elsewhere the right password opens it."""
SIGN_INS_PER_MINUTE = 20
"""Attempts to sign in from one address, right or wrong: each hashes a password."""
SIGN_IN_NOTES_MAX = 200
"""Failures to sign in that the audit log of a workspace takes from one process within an hour."""
SESSIONS_MAX = 20
"""Sessions of one account or token; one more ends the one that would end first."""

# --- the audit log --------------------------------------------------------------------------
AUDIT_LOG_READ_MAX = 10_000
"""Entries that one page of `audit_log list` looks at; where few of them are asked for, there may be more pages."""
AUDIT_TEXT_LENGTH_MAX = 120
"""Characters of a parameter that an entry shows; of a longer one it says how long it is."""
AUDIT_LIST_LENGTH_MAX = 10
"""Elements of a list that an entry shows; of a longer one it says how many there are."""
# --- analytics ------------------------------------------------------------------------------
ANALYTICS_ROWS_MAX = 20_000
"""Rows of one answer."""
ANALYTICS_SECONDS_MAX = 60
"""Of one query; questions are answered one after the other."""
ANALYTICS_STEPS_MAX = 10
"""Steps of a funnel."""
ANALYTICS_VALUES_MAX = 50
"""Values of a break-down; the rest is one row."""

# --- deliveries -----------------------------------------------------------------------------

DELIVERIES_DAYS = 14
"""How long attempts to call a webhook are kept with their requests."""
DELIVERIES_MAX = 1_000
"""How many are kept of a workspace, of those that failed and of those that did not, give or take a few."""
