"""A method for each operation. Written by `make format`; change the operations instead."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Concatenate, Generic, Literal, ParamSpec

from msgspec import UNSET

from threadline.capabilities.ask.analytics.operations import attribution as ask_analytics_operations_attribution
from threadline.capabilities.ask.analytics.operations import cohorts as ask_analytics_operations_cohorts
from threadline.capabilities.ask.analytics.operations import distribution as ask_analytics_operations_distribution
from threadline.capabilities.ask.analytics.operations import experiment as ask_analytics_operations_experiment
from threadline.capabilities.ask.analytics.operations import funnel as ask_analytics_operations_funnel
from threadline.capabilities.ask.analytics.operations import journey as ask_analytics_operations_journey
from threadline.capabilities.ask.analytics.operations import lifetime as ask_analytics_operations_lifetime
from threadline.capabilities.ask.analytics.operations import paths as ask_analytics_operations_paths
from threadline.capabilities.ask.analytics.operations import retention as ask_analytics_operations_retention
from threadline.capabilities.ask.analytics.operations import rfm as ask_analytics_operations_rfm
from threadline.capabilities.ask.analytics.operations import sessions as ask_analytics_operations_sessions
from threadline.capabilities.ask.analytics.operations import today as ask_analytics_operations_today
from threadline.capabilities.ask.analytics.operations import trend as ask_analytics_operations_trend
from threadline.capabilities.ask.message_status import operations as ask_message_status_operations
from threadline.capabilities.ask.search.operations import correlate as ask_search_operations_correlate
from threadline.capabilities.ask.search.operations import find as ask_search_operations_find
from threadline.capabilities.ask.search.operations import index as ask_search_operations_index
from threadline.capabilities.ask.search.operations import people as ask_search_operations_people
from threadline.capabilities.ask.search.operations import timeline as ask_search_operations_timeline
from threadline.capabilities.ask.unsent import operations as ask_unsent_operations
from threadline.capabilities.decide.drafts.operations import checking as decide_drafts_operations_checking
from threadline.capabilities.decide.drafts.operations import features as decide_drafts_operations_features
from threadline.capabilities.decide.drafts.operations import fields as decide_drafts_operations_fields
from threadline.capabilities.decide.drafts.operations import journeys as decide_drafts_operations_journeys
from threadline.capabilities.decide.drafts.operations import leaderboards as decide_drafts_operations_leaderboards
from threadline.capabilities.decide.drafts.operations import points as decide_drafts_operations_points
from threadline.capabilities.decide.drafts.operations import proposals as decide_drafts_operations_proposals
from threadline.capabilities.decide.drafts.operations import segments as decide_drafts_operations_segments
from threadline.capabilities.decide.drafts.operations import showing as decide_drafts_operations_showing
from threadline.capabilities.decide.drafts.operations import streaks as decide_drafts_operations_streaks
from threadline.capabilities.decide.drafts.operations import versions as decide_drafts_operations_versions
from threadline.capabilities.decide.gallery import operations as decide_gallery_operations
from threadline.capabilities.decide.rules.operations import decisions as decide_rules_operations_decisions
from threadline.capabilities.decide.rules.operations import evaluation as decide_rules_operations_evaluation
from threadline.capabilities.decide.rules.operations import rules as decide_rules_operations_rules
from threadline.capabilities.decide.rules.operations import sets as decide_rules_operations_sets
from threadline.capabilities.decide.rules.operations import shadows as decide_rules_operations_shadows
from threadline.capabilities.decide.rules.operations import verification as decide_rules_operations_verification
from threadline.capabilities.decide.rules.operations import versions as decide_rules_operations_versions
from threadline.capabilities.decide.whatif import views as decide_whatif_views
from threadline.capabilities.decide.whatif.operations import results as decide_whatif_operations_results
from threadline.capabilities.foundation.definitions import applying as foundation_definitions_applying
from threadline.capabilities.foundation.events import forms as foundation_events_forms
from threadline.capabilities.foundation.events import rejected as foundation_events_rejected
from threadline.capabilities.foundation.events.operations import catalogue as foundation_events_operations_catalogue
from threadline.capabilities.foundation.events.operations import events as foundation_events_operations_events
from threadline.capabilities.foundation.events.operations import feed as foundation_events_operations_feed
from threadline.capabilities.foundation.events.operations import rejected as foundation_events_operations_rejected
from threadline.capabilities.foundation.events.operations import resubmission as foundation_events_operations_resubmission
from threadline.capabilities.foundation.jobs import operations as foundation_jobs_operations
from threadline.capabilities.foundation.webhooks.operations import deliveries as foundation_webhooks_operations_deliveries
from threadline.capabilities.foundation.webhooks.operations import destinations as foundation_webhooks_operations_destinations
from threadline.capabilities.foundation.webhooks.operations import requests as foundation_webhooks_operations_requests
from threadline.capabilities.operate.accounts import operations as operate_accounts_operations
from threadline.capabilities.operate.audit_log import operations as operate_audit_log_operations
from threadline.capabilities.operate.doctor import operations as operate_doctor_operations
from threadline.capabilities.operate.effects import operations as operate_effects_operations
from threadline.capabilities.operate.erasure import operations as operate_erasure_operations
from threadline.capabilities.operate.keys import operations as operate_keys_operations
from threadline.capabilities.operate.retention import operations as operate_retention_operations
from threadline.capabilities.profile.features.operations import definitions as profile_features_operations_definitions
from threadline.capabilities.profile.features.operations import spread as profile_features_operations_spread
from threadline.capabilities.profile.features.operations import top as profile_features_operations_top
from threadline.capabilities.profile.features.operations import training_set as profile_features_operations_training_set
from threadline.capabilities.profile.features.operations import vector as profile_features_operations_vector
from threadline.capabilities.profile.interests import operations as profile_interests_operations
from threadline.capabilities.profile.leaderboards.operations import board_query as profile_leaderboards_operations_board_query
from threadline.capabilities.profile.leaderboards.operations import definitions as profile_leaderboards_operations_definitions
from threadline.capabilities.profile.leaderboards.operations import standing as profile_leaderboards_operations_standing
from threadline.capabilities.profile.memory.operations import corrections as profile_memory_operations_corrections
from threadline.capabilities.profile.memory.operations import derivations as profile_memory_operations_derivations
from threadline.capabilities.profile.memory.operations import facts as profile_memory_operations_facts
from threadline.capabilities.profile.memory.operations import lineage as profile_memory_operations_lineage
from threadline.capabilities.profile.memory.operations import variables as profile_memory_operations_variables
from threadline.capabilities.profile.people.operations import merges as profile_people_operations_merges
from threadline.capabilities.profile.people.operations import names as profile_people_operations_names
from threadline.capabilities.profile.people.operations import people as profile_people_operations_people
from threadline.capabilities.profile.people.operations import person as profile_people_operations_person
from threadline.capabilities.profile.people.operations import tags as profile_people_operations_tags
from threadline.capabilities.profile.points.operations import balance as profile_points_operations_balance
from threadline.capabilities.profile.points.operations import ledger as profile_points_operations_ledger
from threadline.capabilities.profile.points.operations import tables as profile_points_operations_tables
from threadline.capabilities.profile.points.operations import transactions as profile_points_operations_transactions
from threadline.capabilities.profile.segments.operations import definitions as profile_segments_operations_definitions
from threadline.capabilities.profile.segments.operations import members as profile_segments_operations_members
from threadline.capabilities.profile.segments.operations import person as profile_segments_operations_person
from threadline.capabilities.profile.segments.operations import sizes as profile_segments_operations_sizes
from threadline.capabilities.profile.streaks import operations as profile_streaks_operations
from threadline.capabilities.reach.alerts.operations import forms as reach_alerts_operations_forms
from threadline.capabilities.reach.alerts.operations import listed as reach_alerts_operations_listed
from threadline.capabilities.reach.alerts.operations import person as reach_alerts_operations_person
from threadline.capabilities.reach.alerts.operations import written as reach_alerts_operations_written
from threadline.capabilities.reach.broadcasts import definition as reach_broadcasts_definition
from threadline.capabilities.reach.broadcasts.operations import creating as reach_broadcasts_operations_creating
from threadline.capabilities.reach.broadcasts.operations import estimating as reach_broadcasts_operations_estimating
from threadline.capabilities.reach.broadcasts.operations import reading as reach_broadcasts_operations_reading
from threadline.capabilities.reach.broadcasts.operations import testing as reach_broadcasts_operations_testing
from threadline.capabilities.reach.consent.operations import subscriptions as reach_consent_operations_subscriptions
from threadline.capabilities.reach.consent.operations import suppression as reach_consent_operations_suppression
from threadline.capabilities.reach.feedback.operations import events as reach_feedback_operations_events
from threadline.capabilities.reach.feedback.operations import intake as reach_feedback_operations_intake
from threadline.capabilities.reach.inbox import operations as reach_inbox_operations
from threadline.capabilities.reach.journeys.operations import acting as reach_journeys_operations_acting
from threadline.capabilities.reach.journeys.operations import definitions as reach_journeys_operations_definitions
from threadline.capabilities.reach.journeys.operations import people as reach_journeys_operations_people
from threadline.capabilities.reach.journeys.operations import tried as reach_journeys_operations_tried
from threadline.capabilities.reach.journeys.operations import what_if as reach_journeys_operations_what_if
from threadline.capabilities.reach.mail.operations import as_sent as reach_mail_operations_as_sent
from threadline.capabilities.reach.mail.operations import domains as reach_mail_operations_domains
from threadline.capabilities.reach.mail.operations import history as reach_mail_operations_history
from threadline.capabilities.reach.mail.operations import pictures as reach_mail_operations_pictures
from threadline.capabilities.reach.mail.operations import preview as reach_mail_operations_preview
from threadline.capabilities.reach.mail.operations import send as reach_mail_operations_send
from threadline.capabilities.reach.mail.operations import templates as reach_mail_operations_templates
from threadline.capabilities.reach.mail.operations import testing as reach_mail_operations_testing
from msgspec import UNSET

from threadline.kernel.operation import Operation
from threadline.surfaces.python.call import Answer, Call, Many, Moment

Parameters = ParamSpec("Parameters")

class _Awaited(Generic[Parameters, Answer]):
    """The same method, to be awaited."""
    def __init__(self, method: Callable[Concatenate[Any, Parameters], Answer]) -> None: ...
    def __get__(self, instance: object, owner: object) -> Callable[Parameters, Awaitable[Answer]]: ...

class _Accounts:
    """People who use the console, and their roles."""
    def change(self, name: str, *, role: Literal['viewer', 'support', 'marketer', 'operator', 'admin'] | None = None,
        password: str | None = None) -> operate_accounts_operations.AccountEntry:
        """Give an account another role, or another password."""
    def create(self, *, name: str, role: Literal['viewer', 'support', 'marketer', 'operator', 'admin'],
        password: str) -> operate_accounts_operations.AccountEntry:
        """Create an account for somebody who will use the console."""
    def list(self) -> operate_accounts_operations.AccountList:
        """List the accounts of the workspace."""
    def password_link(self, name: str) -> operate_accounts_operations.PasswordLink:
        """Make a link with which somebody sets their password: once, within a day. An earlier link opens nothing more."""
    def remove(self, name: str) -> operate_accounts_operations.AccountEntry:
        """Remove an account and end its sessions."""
    def reset_second_factor(self, name: str) -> operate_accounts_operations.AccountEntry:
        """Take the second factor from an account whose owner has lost it; where it is required, the next sign-in sets up another."""

class _AsyncAccounts:
    change = _Awaited(_Accounts.change)
    create = _Awaited(_Accounts.create)
    list = _Awaited(_Accounts.list)
    password_link = _Awaited(_Accounts.password_link)
    remove = _Awaited(_Accounts.remove)
    reset_second_factor = _Awaited(_Accounts.reset_second_factor)

class _Alerts:
    """Messages that people see inside an application."""
    def dismiss(self, id: str, alert: str, *,
        anyone: bool = False) -> reach_alerts_operations_person.AlertDismissResult:
        """Dismiss an alert for a person."""
    def list(self, *, cursor: str = '', limit: int = 100,
        state: Literal['', 'active', 'scheduled', 'over', 'withdrawn'] = '') -> reach_alerts_operations_listed.AlertList:
        """List alerts by id: active, scheduled, over or withdrawn."""
    def of(self, id: str, *, severity: Literal['', 'info', 'warning', 'critical'] = '', dismissed: bool = False,
        anyone: bool = False, at: Moment | None = None) -> reach_alerts_operations_person.AlertsResult:
        """Show the alerts that a person sees, now or at an instant."""
    def show(self, id: str, *, version: int | None = None) -> reach_alerts_operations_forms.AlertVersion:
        """Show an alert as it was written, in its newest version or another."""
    def versions(self, id: str, *, cursor: str = '', limit: int = 100) -> reach_alerts_operations_listed.AlertVersions:
        """List the versions of an alert, oldest first: who wrote each and when."""
    def withdraw(self, id: str, *, note: str = '') -> reach_alerts_operations_written.AlertWriteResult:
        """Withdraw an alert, so that nobody sees it any more."""
    def write(self, id: str, *, title: str, body: str = '', link: str = '',
        severity: Literal['info', 'warning', 'critical'] = 'info', start: Moment | None = None,
        stop: Moment | None = None, tags: Many[str] = (), segments: Many[str] = (),
        when: Mapping[str, Any] | None = None, dismissable: bool = True, shown_again: bool = False,
        expected: int | None = None) -> reach_alerts_operations_written.AlertWriteResult:
        """Write an alert, or a new version of it."""

class _AsyncAlerts:
    dismiss = _Awaited(_Alerts.dismiss)
    list = _Awaited(_Alerts.list)
    of = _Awaited(_Alerts.of)
    show = _Awaited(_Alerts.show)
    versions = _Awaited(_Alerts.versions)
    withdraw = _Awaited(_Alerts.withdraw)
    write = _Awaited(_Alerts.write)

class _Analytics:
    """Trends, funnels, retention and other numbers about everybody."""
    def attribution(self, *, start: Moment | None = None, stop: Moment | None = None, event: str = 'purchase_completed',
        channel: str = 'context.campaign.source', touches: str = '*', window: str = '30d', half_life: str = '7d',
        value: str = '', most: int = 15) -> ask_analytics_operations_attribution.Attribution:
        """Credit conversions to the channels before them, by six models."""
    def cohorts(self, *, start: Moment | None = None, stop: Moment | None = None,
        per: Literal['day', 'week', 'month'] = 'week', timezone: str = '',
        week_starts_on: Literal['', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] = '',
        first: str = '*', periods: int = 8, event: str = 'purchase_completed',
        value: str = '') -> ask_analytics_operations_cohorts.Cohorts:
        """Add up what people do or spend as they age, by the period in which they began."""
    def distribution(self, *, start: Moment | None = None, stop: Moment | None = None, feature: str, segment: str = '',
        baseline_start: Moment | None = None, baseline_stop: Moment | None = None, baseline_segment: str = '',
        most: int = 10) -> ask_analytics_operations_distribution.Distribution:
        """Show how a feature is spread over people, and how far it has drifted."""
    def experiment(self, *, start: Moment | None = None, stop: Moment | None = None, broadcast: str = '',
        journey: str = '', step: str = '', assignment: str = '', arm: str = 'arm', metric: str = 'purchase_completed',
        value: str = '', window: str = '14d', control: str = '', weights: Many[str] = (), confidence: int = 95,
        planned: int = 1000) -> ask_analytics_operations_experiment.Experiment:
        """Compare the variants of a broadcast, a journey or your own experiment, at any time while it runs."""
    def funnel(self, *, start: Moment | None = None, stop: Moment | None = None, steps: Many[str], window: str = '7d',
        by: str = '', most: int = 7) -> ask_analytics_operations_funnel.Funnel:
        """Count who gets from step to step within a time, and how long it takes."""
    def journey(self, *, start: Moment | None = None, stop: Moment | None = None,
        journey: str) -> ask_analytics_operations_journey.JourneyFlow:
        """Count who came to each step of a journey, by which path, and where people left it."""
    def lifetime(self, *, start: Moment | None = None, stop: Moment | None = None, event: str = 'purchase_completed',
        where: str | Mapping[str, Any] = '', value: str = 'total', weeks: int = 52,
        most: int = 100) -> ask_analytics_operations_lifetime.Lifetime:
        """Predict who will buy again, how often and for how much."""
    def paths(self, *, start: Moment | None = None, stop: Moment | None = None, start_at: str = '*',
        direction: Literal['after', 'before'] = 'after', depth: int = 4, gap: str = '30m', by: str = '',
        most: int = 7) -> ask_analytics_operations_paths.Paths:
        """Follow what people do after an event, or did before it, step by step."""
    def retention(self, *, start: Moment | None = None, stop: Moment | None = None,
        per: Literal['day', 'week', 'month'] = 'week', timezone: str = '',
        week_starts_on: Literal['', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] = '',
        first: str = '*', periods: int = 8, returning: str = '*',
        kind: Literal['bounded', 'rolling'] = 'bounded') -> ask_analytics_operations_retention.Retention:
        """Count who comes back, by the period in which they began."""
    def rfm(self, *, start: Moment | None = None, stop: Moment | None = None, event: str = 'purchase_completed',
        where: str | Mapping[str, Any] = '', value: str = 'total',
        group: Literal['', 'champions', 'loyal', 'promising', 'new', 'waning', 'at risk', 'asleep'] = '',
        most: int = 100) -> ask_analytics_operations_rfm.Rfm:
        """Score people by recency, frequency and amount of their purchases (RFM)."""
    def sessions(self, *, start: Moment | None = None, stop: Moment | None = None,
        per: Literal['day', 'week', 'month'] = 'day', timezone: str = '',
        week_starts_on: Literal['', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] = '',
        events: str = '*', gap: str = '30m', by: str = '', most: int = 7) -> ask_analytics_operations_sessions.Sessions:
        """Count visits: how many, how long they last and how many events they have."""
    def today(self, *, timezone: str = '') -> ask_analytics_operations_today.Today:
        """Compare today with the same hours of the day before: people, new people, events by type."""
    def trend(self, *, start: Moment | None = None, stop: Moment | None = None,
        per: Literal['day', 'week', 'month'] = 'day', timezone: str = '',
        week_starts_on: Literal['', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'] = '',
        event: str = '', where: str | Mapping[str, Any] = '', by: str = '',
        most: int = 7) -> ask_analytics_operations_trend.Trend:
        """Count an event and the people who had it, by day, week or month."""

class _AsyncAnalytics:
    attribution = _Awaited(_Analytics.attribution)
    cohorts = _Awaited(_Analytics.cohorts)
    distribution = _Awaited(_Analytics.distribution)
    experiment = _Awaited(_Analytics.experiment)
    funnel = _Awaited(_Analytics.funnel)
    journey = _Awaited(_Analytics.journey)
    lifetime = _Awaited(_Analytics.lifetime)
    paths = _Awaited(_Analytics.paths)
    retention = _Awaited(_Analytics.retention)
    rfm = _Awaited(_Analytics.rfm)
    sessions = _Awaited(_Analytics.sessions)
    today = _Awaited(_Analytics.today)
    trend = _Awaited(_Analytics.trend)

class _AuditLog:
    """Who changed what, and when."""
    def list(self, *, cursor: str = '', limit: int = 100, start: Moment | None = None, stop: Moment | None = None,
        who: str = '', operation: str = '', object: str = '',
        outcome: str = '') -> operate_audit_log_operations.AuditLogPage:
        """List what was changed by whom, the newest first."""

class _AsyncAuditLog:
    list = _Awaited(_AuditLog.list)

class _Broadcasts:
    """One mail to everybody of an audience, once."""
    def audience(self, *, audience: reach_broadcasts_definition.Audience | Mapping[str, Any] | None = None,
        template: str = '', topic: str = '',
        seconds: float = 2) -> reach_broadcasts_operations_estimating.AudienceCount:
        """Count an audience, how many of it a mail reaches now, and why it does not reach the others."""
    def cancel(self, id: str) -> reach_broadcasts_operations_reading.BroadcastView:
        """Cancel a broadcast for good: mails that have not been sent are withdrawn."""
    def create(self, id: str, *, template: str, subject: str = '', sender: str = '', topic: str = '',
        variables: Mapping[str, Any] | None = None,
        audience: reach_broadcasts_definition.Audience | Mapping[str, Any] | None = None, at: str = '',
        zone: str = 'UTC', in_zone_of_recipient: bool = False,
        arms: Many[reach_broadcasts_definition.Arm | Mapping[str, Any]] = (), holdout: float = 0.0,
        winner: reach_broadcasts_definition.Winner | Mapping[str, Any] | None = None,
        per_hour: int = 0) -> reach_broadcasts_operations_reading.BroadcastView:
        """Create a broadcast as a draft. The same call again changes nothing; its id can never be used for another."""
    def edit(self, id: str, *, template: str, subject: str = '', sender: str = '', topic: str = '',
        variables: Mapping[str, Any] | None = None,
        audience: reach_broadcasts_definition.Audience | Mapping[str, Any] | None = None, at: str = '',
        zone: str = 'UTC', in_zone_of_recipient: bool = False,
        arms: Many[reach_broadcasts_definition.Arm | Mapping[str, Any]] = (), holdout: float = 0.0,
        winner: reach_broadcasts_definition.Winner | Mapping[str, Any] | None = None,
        per_hour: int = 0) -> reach_broadcasts_operations_reading.BroadcastView:
        """Replace a draft: what is not given is as in a new broadcast. A broadcast that was started cannot be edited."""
    def list(self, *, cursor: str = '', limit: int = 100, start: Moment | None = None, stop: Moment | None = None,
        results: bool = False) -> reach_broadcasts_operations_reading.BroadcastsPage:
        """List broadcasts by when they are sent and drafts by when they were created, the newest first."""
    def measure(self, id: str, *, event: str, within: str = '7d') -> foundation_jobs_operations.JobView:
        """Start a job that counts, for each variant and the control group, who had an event afterwards."""
    def pause(self, id: str) -> reach_broadcasts_operations_reading.BroadcastView:
        """Pause a broadcast: mails that have not been sent wait until it is resumed."""
    def preview(self, id: str) -> reach_broadcasts_operations_creating.Preview:
        """Count the audience of a broadcast and show ten of its people; nothing is sent."""
    def recipients(self, id: str, *, cursor: str = '', limit: int = 100,
        status: Literal['', 'holdout', 'addressed', 'bounced', 'clicked', 'complained', 'delivered', 'opened', 'parked', 'replied', 'sent', 'skipped', 'unknown', 'withdrawn'] = '') -> reach_broadcasts_operations_reading.RecipientsPage:
        """List the recipients of a broadcast with variant and status, all or those of one status."""
    def resume(self, id: str) -> reach_broadcasts_operations_reading.BroadcastView:
        """Go on with a broadcast that was paused or has failed."""
    def show(self, id: str, *, results: bool = False) -> reach_broadcasts_operations_reading.BroadcastView:
        """Show a broadcast and how far it has come."""
    def start(self, id: str) -> reach_broadcasts_operations_reading.BroadcastView:
        """Start a broadcast: at its time, or at once if it has none."""
    def test(self, id: str, *, address: str,
        person: str | None = None) -> reach_broadcasts_operations_testing.TestResult:
        """Send each variant of a broadcast to one address, as a test that is not counted."""

class _AsyncBroadcasts:
    audience = _Awaited(_Broadcasts.audience)
    cancel = _Awaited(_Broadcasts.cancel)
    create = _Awaited(_Broadcasts.create)
    edit = _Awaited(_Broadcasts.edit)
    list = _Awaited(_Broadcasts.list)
    measure = _Awaited(_Broadcasts.measure)
    pause = _Awaited(_Broadcasts.pause)
    preview = _Awaited(_Broadcasts.preview)
    recipients = _Awaited(_Broadcasts.recipients)
    resume = _Awaited(_Broadcasts.resume)
    show = _Awaited(_Broadcasts.show)
    start = _Awaited(_Broadcasts.start)
    test = _Awaited(_Broadcasts.test)

class _Consent:
    """Topics, and who is subscribed to them."""
    def change(self, id: str, *, subscribe: Many[str] = (), unsubscribe: Many[str] = (), everything: bool = False,
        address: str = '', confirmed: bool = False,
        request: str = '') -> reach_consent_operations_subscriptions.ChangeResult:
        """Subscribe a person to topics, or unsubscribe them."""
    def link(self, id: str, *, address: str = '') -> reach_consent_operations_subscriptions.LinkResult:
        """Make the link to a person's preferences page."""
    def of(self, id: str, *, address: str = '') -> reach_consent_operations_subscriptions.ConsentResult:
        """Show what a person is subscribed to."""
    def topics(self) -> reach_consent_operations_subscriptions.TopicList:
        """List the topics that people may subscribe to."""

class _AsyncConsent:
    change = _Awaited(_Consent.change)
    link = _Awaited(_Consent.link)
    of = _Awaited(_Consent.of)
    topics = _Awaited(_Consent.topics)

class _Decisions:
    """Decisions that rules have made, and why."""
    def audit(self, decision: str) -> decide_rules_operations_decisions.AuditResult:
        """Show a decision with its event, its rule, all values that it read, and what followed."""
    def evaluate(self, *, event_id: str | None = None,
        event: foundation_events_forms.NativeEvent | Mapping[str, Any] | None = None, person: str | None = None,
        rule: str | None = None, version: int | None = None, content: Mapping[str, Any] | None = None,
        rule_set: str | None = None, record: bool = False,
        request: str = '') -> decide_rules_operations_evaluation.EvaluateResult:
        """Run the rules on an event or a person, and explain each answer. Records nothing by default."""
    def list(self, *, cursor: str = '', limit: int = 100, start: Moment | None = None, stop: Moment | None = None,
        event: str | None = None, person: str | None = None, rule: str | None = None, version: int | None = None,
        status: Literal['', 'Approved', 'Rejected', 'Review', 'Matched', 'NoMatch', 'Error'] = '') -> decide_rules_operations_decisions.DecisionsPage:
        """List decisions, about an event, of a person, by a rule or all, the newest first."""
    def verify(self, *, cursor: str = '', limit: int = 1000) -> decide_rules_operations_verification.VerifyResult:
        """Recompute decisions from what they read, and list those that do not match."""

class _AsyncDecisions:
    audit = _Awaited(_Decisions.audit)
    evaluate = _Awaited(_Decisions.evaluate)
    list = _Awaited(_Decisions.list)
    verify = _Awaited(_Decisions.verify)

class _Definitions:
    """Definition files: their form, and putting changes in force."""
    def accept(self, section: str, name: str, *, seen: str = '') -> decide_drafts_operations_proposals.DeclaredResult:
        """Put a proposed definition in force: it becomes part of what is made by hand, for everybody."""
    def apply(self, *, cursor: str = '', limit: int = 100) -> foundation_definitions_applying.ApplyResult:
        """Bring a page of people up to the definitions in force; to be repeated until `next` is empty."""
    def apply_in_background(self, *, yes: bool = False) -> foundation_jobs_operations.JobView:
        """Recalculate everyone under the definitions in force as a job that survives restarts."""
    def changes(self) -> foundation_definitions_applying.ChangesResult:
        """Show how the definitions in force differ from those that everybody was last brought up to."""
    def check(self, *, text: str, section: str | None = None,
        name: str = '') -> decide_drafts_operations_checking.CheckResult:
        """Check a definition, or a file of them, beside everything in force; nothing is changed."""
    def declare(self, *, section: str, name: str, text: str,
        note: str = '') -> decide_drafts_operations_proposals.DeclaredResult:
        """Put a definition in force: it becomes part of what is made by hand, for everybody."""
    def decline(self, section: str, name: str, *, reason: str = '') -> decide_drafts_operations_proposals.ProposalView:
        """Decline a proposed definition; take one that was declined off the list."""
    def delete(self, *, section: str, name: str, note: str = '',
        anyway: bool = False) -> decide_drafts_operations_versions.ByHandResult:
        """Delete a definition that is made by hand; refused while something in force uses it."""
    def fields(self, *, people: int = 50, events: bool = False) -> decide_drafts_operations_fields.FieldsResult:
        """List the fields that a condition can name, with their types and samples of their values."""
    def foretell(self, *, cursor: str = '', limit: int = 100) -> foundation_definitions_applying.ForetellResult:
        """What bringing a page of people up to the definitions in force would cause; to be repeated until `next` is empty."""
    def go_back(self, *, version: int, seen: int = 0, note: str = '') -> decide_drafts_operations_versions.ByHandResult:
        """Go back to a former version of what is made by hand: its text becomes a new one, for everybody."""
    def preview_go_back(self, version: int) -> decide_drafts_operations_versions.GoBackPreview:
        """Show what going back to a version of what is made by hand would change; nothing is written."""
    def proposals(self) -> decide_drafts_operations_proposals.ProposalsResult:
        """List the definitions that are proposed."""
    def propose(self, *, section: str, name: str, text: str,
        note: str = '') -> decide_drafts_operations_proposals.ProposalView:
        """Propose a definition, in the place of what you have proposed under its name."""
    def reload(self) -> foundation_definitions_applying.ChangesResult:
        """Put the definition files, as they are now, in force in a running server; all of them or none."""
    def schema(self) -> dict[str, Any]:
        """Give the JSON Schema of definition files, for editors that check while you type."""
    def show(self, section: str, name: str) -> decide_drafts_operations_showing.DefinitionText:
        """Show a definition in force as it is written."""
    def uses(self, *, section: str = '', name: str = '') -> decide_drafts_operations_versions.UsesResult:
        """List what goes by definitions and is none itself: rules, alerts, broadcasts that are not over, people in them."""
    def version(self, version: int, *, against: int = -1) -> decide_drafts_operations_versions.VersionText:
        """Show a version of what is made by hand, and what is different from another one."""
    def versions(self, *, limit: int = 50, before: int = 0) -> decide_drafts_operations_versions.VersionsResult:
        """List the versions of what is made by hand: who, when, and what has changed."""
    def withdraw(self, section: str, name: str) -> decide_drafts_operations_proposals.ProposalView:
        """Withdraw a definition that you have proposed."""

class _AsyncDefinitions:
    accept = _Awaited(_Definitions.accept)
    apply = _Awaited(_Definitions.apply)
    apply_in_background = _Awaited(_Definitions.apply_in_background)
    changes = _Awaited(_Definitions.changes)
    check = _Awaited(_Definitions.check)
    declare = _Awaited(_Definitions.declare)
    decline = _Awaited(_Definitions.decline)
    delete = _Awaited(_Definitions.delete)
    fields = _Awaited(_Definitions.fields)
    foretell = _Awaited(_Definitions.foretell)
    go_back = _Awaited(_Definitions.go_back)
    preview_go_back = _Awaited(_Definitions.preview_go_back)
    proposals = _Awaited(_Definitions.proposals)
    propose = _Awaited(_Definitions.propose)
    reload = _Awaited(_Definitions.reload)
    schema = _Awaited(_Definitions.schema)
    show = _Awaited(_Definitions.show)
    uses = _Awaited(_Definitions.uses)
    version = _Awaited(_Definitions.version)
    versions = _Awaited(_Definitions.versions)
    withdraw = _Awaited(_Definitions.withdraw)

class _Effects:
    """Mails, webhooks and other effects: queues, failures, unknown outcomes."""
    def parked(self, *, cursor: str = '', limit: int = 100,
        queue: str = '') -> operate_effects_operations.ParkedEffects:
        """List effects of all kinds that were given up on, and why."""
    def queues(self) -> operate_effects_operations.QueueList:
        """List the queues, and how many effects wait in each or are unknown."""
    def redrive(self, *, cursor: str = '', limit: int = 100, queue: str = '',
        ids: Many[str] = ()) -> operate_effects_operations.RedrivenEffects:
        """Send effects again that were given up on."""
    def resolve(self, id: str, *, outcome: Literal['happened', 'send_again', 'give_up'],
        why: str = '') -> operate_effects_operations.Resolved:
        """Settle an unknown effect: it happened, send it again, or give it up."""
    def timers(self, *, cursor: str = '', limit: int = 100) -> operate_effects_operations.TimersPage:
        """List what is due later, by due time."""
    def unknown(self, *, cursor: str = '', limit: int = 100) -> operate_effects_operations.UnknownPage:
        """List effects that may or may not have happened: they were begun, and their outcome is not known."""

class _AsyncEffects:
    parked = _Awaited(_Effects.parked)
    queues = _Awaited(_Effects.queues)
    redrive = _Awaited(_Effects.redrive)
    resolve = _Awaited(_Effects.resolve)
    timers = _Awaited(_Effects.timers)
    unknown = _Awaited(_Effects.unknown)

class _Erasures:
    """Erasures of people, with their certificates."""
    def ids(self, id: str) -> operate_erasure_operations.ErasedIds:
        """List the ids of the events that an erasure removed from the log."""
    def list(self, *, cursor: str = '', limit: int = 100) -> operate_erasure_operations.ErasuresPage:
        """List the erasures of people, with their certificates."""
    def show(self, id: str) -> operate_erasure_operations.ErasureView:
        """Show an erasure, how far it has come, and its certificate."""

class _AsyncErasures:
    ids = _Awaited(_Erasures.ids)
    list = _Awaited(_Erasures.list)
    show = _Awaited(_Erasures.show)

class _Events:
    """Events of one person, or of everybody in order."""
    def feed(self, *, cursor: str = '', limit: int = 100,
        skip_damaged: bool = False) -> foundation_events_operations_feed.FeedPage:
        """Follow every event of the workspace in the order of commits."""
    def of(self, id: str, *, cursor: str = '', limit: int = 100, start: Moment | None = None,
        stop: Moment | None = None, type: str = '', types: Many[str] = (),
        order: Literal['asc', 'desc'] = 'desc') -> foundation_events_operations_events.EventsPage:
        """List a person's events by time and type, forward or back."""
    def show(self, id: str) -> foundation_events_forms.EventDetail:
        """Show one event, with the message that it came in and the person it belongs to."""

class _AsyncEvents:
    feed = _Awaited(_Events.feed)
    of = _Awaited(_Events.of)
    show = _Awaited(_Events.show)

class _Exports:
    """Many people and their events in files."""
    def start(self, *, segment: str = '', tags: Many[str] = (), when: Mapping[str, Any] | None = None,
        attributes: Mapping[str, Any] | None = None, events: bool = True) -> foundation_jobs_operations.JobView:
        """Start a job that writes people and their events into files; the setting `exports` names the folder or bucket."""

class _AsyncExports:
    start = _Awaited(_Exports.start)

class _Features:
    """Values about people, such as what they have spent."""
    def list(self) -> profile_features_operations_definitions.DefinitionsResult:
        """List the features in force and what each is made of."""
    def of(self, id: str, *, as_of: Moment | None = None, known: Literal['then', 'now'] = 'then',
        names: str = '') -> profile_features_operations_vector.FeaturesResult:
        """Show a person's features, now or as they were served at an instant."""
    def preview(self, *, text: str, name: str = '',
        seconds: float = 2) -> decide_drafts_operations_features.FeaturePreview:
        """Reckon a feature that is being written from people's events, and show how it is spread."""
    def spread(self, name: str, *, seconds: int = 2) -> profile_features_operations_spread.FeatureSpread:
        """Show the distribution of a feature over people, from as many as can be read in two seconds."""
    def top(self, name: str, *, limit: int = 10, lowest: bool = False) -> profile_features_operations_top.TopResult:
        """List the people with the highest values of a feature; the first time it reads every person."""
    def training_set(self, *, labels: Many[profile_features_operations_training_set.LabelParams | Mapping[str, Any]],
        names: Many[str] = (),
        known: Literal['then', 'now'] = 'then') -> profile_features_operations_training_set.TrainingSet:
        """Give the feature vectors of people at label times, as they were served then."""

class _AsyncFeatures:
    list = _Awaited(_Features.list)
    of = _Awaited(_Features.of)
    preview = _Awaited(_Features.preview)
    spread = _Awaited(_Features.spread)
    top = _Awaited(_Features.top)
    training_set = _Awaited(_Features.training_set)

class _Feedback:
    """Results of mail: opens, clicks, bounces, replies."""
    def counters(self, *, start: Moment | None = None, stop: Moment | None = None, template: str | None = None,
        journey: str | None = None, broadcast: str | None = None) -> reach_feedback_operations_events.FeedbackCounters:
        """Count the results of the mails of a template, a journey or a broadcast."""
    def events(self, *, cursor: str = '', limit: int = 100, start: Moment | None = None, stop: Moment | None = None,
        template: str | None = None, journey: str | None = None, broadcast: str | None = None,
        type: Literal['', 'mail_bounced', 'mail_clicked', 'mail_complained', 'mail_delayed', 'mail_delivered', 'mail_fetched', 'mail_opened', 'mail_replied', 'mail_scanned', 'mail_sent', 'mail_skipped'] = '') -> reach_feedback_operations_events.FeedbackEventsPage:
        """List the results of the mails of a template, a journey or a broadcast."""
    def notify(self, *, text: str) -> reach_feedback_operations_intake.FeedbackTaken:
        """Hand in a notification of Amazon SES."""
    def receive(self, *, raw: str, recipients: Many[str] = (),
        sender: str | None = None) -> reach_feedback_operations_intake.FeedbackTaken:
        """Hand in a mail that came back: a bounce, a complaint or a reply."""

class _AsyncFeedback:
    counters = _Awaited(_Feedback.counters)
    events = _Awaited(_Feedback.events)
    notify = _Awaited(_Feedback.notify)
    receive = _Awaited(_Feedback.receive)

class _Gallery:
    """Journeys that ship with their mails, installed whole."""
    def install(self, name: str, *, suffix: str = '', sender: str = '', paused: bool = False,
        note: str = '') -> decide_gallery_operations.Installed:
        """Install a journey of the gallery: it becomes part of what is made by hand, with its mails and segments."""
    def list(self) -> decide_gallery_operations.GalleryList:
        """List the journeys that can be installed whole."""
    def mails(self, name: str, *, suffix: str = '', sender: str = '') -> decide_gallery_operations.GalleryMails:
        """Show the mails of a journey of the gallery, filled in for somebody made up."""
    def preview(self, name: str, *, suffix: str = '', sender: str = '', days: int = 90,
        seconds: float = 2) -> decide_drafts_operations_journeys.JourneyPreview:
        """Try a journey of the gallery, with all that comes with it, on as many people as the time allows."""
    def show(self, name: str, *, suffix: str = '') -> decide_gallery_operations.GalleryView:
        """Show a journey of the gallery: what comes with it, what it needs, and which of its names are taken."""

class _AsyncGallery:
    install = _Awaited(_Gallery.install)
    list = _Awaited(_Gallery.list)
    mails = _Awaited(_Gallery.mails)
    preview = _Awaited(_Gallery.preview)
    show = _Awaited(_Gallery.show)

class _Inbox:
    """The development inbox: mail that never left this machine."""
    def clear(self) -> reach_inbox_operations.InboxClearResult:
        """Remove all mail from the development inbox."""
    def list(self, *, cursor: str = '', limit: int = 100, to: str = '') -> reach_inbox_operations.InboxListResult:
        """List mail that was sent to the development inbox."""
    def show(self, id: str) -> reach_inbox_operations.InboxShowResult:
        """Show a mail of the development inbox: headers, HTML, text, links and the raw message."""

class _AsyncInbox:
    clear = _Awaited(_Inbox.clear)
    list = _Awaited(_Inbox.list)
    show = _Awaited(_Inbox.show)

class _Interests:
    """What a person cares about and where they came from."""
    def attribution(self, id: str) -> profile_interests_operations.AttributionResult:
        """Show the first and the latest campaign that a person came from."""
    def of(self, id: str, *, as_of: Moment | None = None, known: Literal['then', 'now'] = 'then',
        topic: str | None = None, scope: str | None = None, application: str | None = None,
        mode: Literal['declared', 'periods', 'decay'] = 'declared', half_life: str | None = None,
        limit: int = 100) -> profile_interests_operations.InterestsResult:
        """Rank what a person cares about, now or as of an instant."""
    def summary(self, id: str, *, start: Moment | None = None, stop: Moment | None = None, topic: str | None = None,
        application: str | None = None, limit: int = 1000) -> profile_interests_operations.SummaryResult:
        """Sum up a person's actions by topic, application, scope and period."""

class _AsyncInterests:
    attribution = _Awaited(_Interests.attribution)
    of = _Awaited(_Interests.of)
    summary = _Awaited(_Interests.summary)

class _Jobs:
    """Long work in the background: progress, pause, cancel."""
    def cancel(self, id: str) -> foundation_jobs_operations.JobView:
        """Stop a job for good after the page that it is at."""
    def list(self, *, cursor: str = '', limit: int = 100) -> foundation_jobs_operations.JobsPage:
        """List jobs, the newest first."""
    def pause(self, id: str) -> foundation_jobs_operations.JobView:
        """Stop a job after the page that it is at, until it is resumed."""
    def resume(self, id: str) -> foundation_jobs_operations.JobView:
        """Go on with a job that was paused or has failed."""
    def show(self, id: str) -> foundation_jobs_operations.JobView:
        """Show a job and how far it has come."""

class _AsyncJobs:
    cancel = _Awaited(_Jobs.cancel)
    list = _Awaited(_Jobs.list)
    pause = _Awaited(_Jobs.pause)
    resume = _Awaited(_Jobs.resume)
    show = _Awaited(_Jobs.show)

class _Journeys:
    """Journeys: their steps, who is in them, what they would send."""
    def enter(self, id: str, name: str, *, variables: Mapping[str, Any] | None = None,
        request: str = '') -> reach_journeys_operations_acting.RequestResult:
        """Let a person enter a journey."""
    def exit(self, id: str, name: str, *, reason: str = '',
        request: str = '') -> reach_journeys_operations_acting.RequestResult:
        """Let a person leave a journey."""
    def history(self, id: str, name: str, *, run: str = '') -> reach_journeys_operations_people.JourneyHistoryResult:
        """Show a person's path through a journey, step by step."""
    def list(self) -> reach_journeys_operations_definitions.JourneysListResult:
        """List the journeys in force."""
    def of(self, id: str, *, as_of: Moment | None = None) -> reach_journeys_operations_people.JourneysOfResult:
        """Show the journeys of a person, now or at an instant."""
    def pause(self, name: str, *, person: str | None = None) -> reach_journeys_operations_acting.PauseResult:
        """Pause a journey, or one person in it."""
    def people(self, name: str, *, cursor: str = '', limit: int = 100,
        step: str = '') -> reach_journeys_operations_people.JourneyPeopleResult:
        """List the people in a journey, or at one of its steps."""
    def preview(self, *, text: str, name: str = '', days: int = 90,
        seconds: float = 2) -> decide_drafts_operations_journeys.JourneyPreview:
        """Try a journey that is being written on the history of as many people as the time allows."""
    def resume(self, name: str, *, person: str | None = None) -> reach_journeys_operations_acting.PauseResult:
        """Resume a journey, or one person in it."""
    def show(self, name: str) -> reach_journeys_operations_definitions.JourneyView:
        """Show a journey, drawn, with the people at each step."""
    def tried(self, id: str) -> reach_journeys_operations_tried.JourneysTried:
        """Show what journeys tried in the background would have sent."""
    def what_if(self, *, definitions: str, file: str = '', start: Moment | None = None, stop: Moment | None = None,
        people: Many[str] = (), samples: int = 20) -> reach_journeys_operations_what_if.JourneysWhatIfResult:
        """Try journeys on history: who would have got what, and when, compared with those in force."""
    def what_if_in_background(self, *, definitions: str, file: str = '', start: Moment | None = None,
        stop: Moment | None = None) -> foundation_jobs_operations.JobView:
        """Try journeys on everybody's history in a job, which only counts."""

class _AsyncJourneys:
    enter = _Awaited(_Journeys.enter)
    exit = _Awaited(_Journeys.exit)
    history = _Awaited(_Journeys.history)
    list = _Awaited(_Journeys.list)
    of = _Awaited(_Journeys.of)
    pause = _Awaited(_Journeys.pause)
    people = _Awaited(_Journeys.people)
    preview = _Awaited(_Journeys.preview)
    resume = _Awaited(_Journeys.resume)
    show = _Awaited(_Journeys.show)
    tried = _Awaited(_Journeys.tried)
    what_if = _Awaited(_Journeys.what_if)
    what_if_in_background = _Awaited(_Journeys.what_if_in_background)

class _Keys:
    """Write keys and tokens: make, list and revoke them."""
    def create(self, *, name: str, kind: Literal['write_key', 'token'] = 'write_key',
        scopes: Many[Literal['read', 'write', 'admin', 'personal']] = (),
        expires_at: Moment | None = None) -> operate_keys_operations.NewKey:
        """Make a write key or a token; its secret is shown only this once."""
    def list(self) -> operate_keys_operations.KeyList:
        """List the keys of the workspace."""
    def revoke(self, id: str) -> operate_keys_operations.KeyEntry:
        """Revoke a key: requests with it are refused from now on."""

class _AsyncKeys:
    create = _Awaited(_Keys.create)
    list = _Awaited(_Keys.list)
    revoke = _Awaited(_Keys.revoke)

class _Leaderboards:
    """Ranks of people, now or in any past period."""
    def list(self) -> profile_leaderboards_operations_definitions.BoardsResult:
        """List the leaderboards that are declared."""
    def preview(self, *, text: str, name: str = '',
        seconds: float = 2) -> decide_drafts_operations_leaderboards.BoardPreview:
        """Rank people by a leaderboard that is being written, and show its first ten places."""
    def refresh(self) -> foundation_jobs_operations.JobView:
        """Rank everybody again, in a job."""
    def standing(self, id: str, name: str, *, period: Literal['day', 'week', 'month', 'all'] = 'all',
        at: Moment | None = None, scope: str = '',
        around: int = 0) -> profile_leaderboards_operations_standing.Standing:
        """Show a person's rank on a leaderboard, and the people around them."""
    def top(self, name: str, *, period: Literal['day', 'week', 'month', 'all'] = 'all', at: Moment | None = None,
        scope: str = '', limit: int = 10) -> profile_leaderboards_operations_board_query.Leaderboard:
        """List the top of a leaderboard, now or for any past period."""

class _AsyncLeaderboards:
    list = _Awaited(_Leaderboards.list)
    preview = _Awaited(_Leaderboards.preview)
    refresh = _Awaited(_Leaderboards.refresh)
    standing = _Awaited(_Leaderboards.standing)
    top = _Awaited(_Leaderboards.top)

class _Mail:
    """Mail to people: templates, previews, and what was sent."""
    def add_picture(self, *, name: str, content: str) -> reach_mail_operations_pictures.MailPicture:
        """Add a picture for mails; the same file is the same picture."""
    def as_sent(self, id: str, message: str) -> reach_mail_operations_as_sent.MailAsSent:
        """Show a mail as a person got it, with the template and the data of that moment."""
    def delete_picture(self, id: str) -> reach_mail_operations_pictures.MailPicture:
        """Delete a picture that no template in force shows; mails that were sent with it show it no more."""
    def domains(self, *, sender: str = '') -> reach_mail_operations_domains.MailDomainsResult:
        """Check the domains of senders by DNS: SPF, DKIM and DMARC."""
    def history(self, id: str, *, as_of: Moment | None = None,
        limit: int = 100) -> reach_mail_operations_history.MailHistoryResult:
        """List the mails of a person, with the result of each."""
    def pictures(self) -> reach_mail_operations_pictures.MailPicturesResult:
        """List the pictures that mails may show, with the templates that use each."""
    def preview(self, template: str, *, person: str = '', variables: Mapping[str, Any] | None = None, subject: str = '',
        sender: str = '', event: str = '', language: str = '',
        version: str = '') -> reach_mail_operations_preview.MailPreviewResult:
        """Fill in a mail template for a person, and send nothing."""
    def preview_draft(self, *, text: str, name: str = '', person: str = '', variables: Mapping[str, Any] | None = None,
        language: str = '') -> reach_mail_operations_preview.MailPreviewResult:
        """Fill in a mail template that is being written, and send nothing."""
    def send(self, id: str, *, template: str, variables: Mapping[str, Any] | None = None, sender: str = '',
        topic: str = '', event: str = '', request: str = '') -> reach_mail_operations_send.MailSendResult:
        """Send one mail to a person."""
    def sent(self, id: str, template: str, *,
        as_of: Moment | None = None) -> reach_mail_operations_history.MailSentResult:
        """Show whether a template was sent to a person, and when."""
    def template(self, template: str, *, version: str = '') -> reach_mail_operations_templates.MailTemplateResult:
        """Show how a mail template is written, now or in an earlier version."""
    def templates(self) -> reach_mail_operations_templates.MailTemplatesResult:
        """List the mail templates in force."""
    def test(self, template: str, *, address: str, person: str | None = None,
        language: str = '') -> reach_mail_operations_testing.MailTestResult:
        """Send the template in force to one address, as a test that is not counted."""
    def why_not(self, id: str, *, template: str = '', journey: str = '', broadcast: str = '',
        rule: str = '') -> ask_unsent_operations.WhyNotResult:
        """Explain why a person did not get a mail: skipped, waiting, held out, not in the audience, never triggered."""

class _AsyncMail:
    add_picture = _Awaited(_Mail.add_picture)
    as_sent = _Awaited(_Mail.as_sent)
    delete_picture = _Awaited(_Mail.delete_picture)
    domains = _Awaited(_Mail.domains)
    history = _Awaited(_Mail.history)
    pictures = _Awaited(_Mail.pictures)
    preview = _Awaited(_Mail.preview)
    preview_draft = _Awaited(_Mail.preview_draft)
    send = _Awaited(_Mail.send)
    sent = _Awaited(_Mail.sent)
    template = _Awaited(_Mail.template)
    templates = _Awaited(_Mail.templates)
    test = _Awaited(_Mail.test)
    why_not = _Awaited(_Mail.why_not)

class _Memory:
    """Facts about a person, and the events behind them."""
    def definitions(self) -> profile_memory_operations_derivations.DerivationsResult:
        """List the derivations in force and which facts each makes."""
    def fact(self, id: str,
        type: Literal['fact', 'preference', 'interest', 'purchase', 'support', 'behavioral', 'campaign', 'form'],
        key: str, *, as_of: Moment | None = None,
        known: Literal['then', 'now'] = 'then') -> profile_memory_operations_facts.FactView:
        """Show one fact about a person, and what contradicts it."""
    def lineage(self, id: str,
        type: Literal['fact', 'preference', 'interest', 'purchase', 'support', 'behavioral', 'campaign', 'form'],
        key: str, *, cursor: str = '', limit: int = 100) -> profile_memory_operations_lineage.LineagePage:
        """List the events that made a fact, retracted it or restored it."""
    def of(self, id: str, *, as_of: Moment | None = None, known: Literal['then', 'now'] = 'then',
        type: Literal['fact', 'preference', 'interest', 'purchase', 'support', 'behavioral', 'campaign', 'form'] | None = None,
        text: str = '', limit: int = 1000) -> profile_memory_operations_facts.MemoryResult:
        """List the facts known about a person: all, of one type, or matching a text, now or at an instant."""
    def remember(self, id: str, *,
        type: Literal['fact', 'preference', 'interest', 'purchase', 'support', 'behavioral', 'campaign', 'form'],
        key: str, value: Any, source: Literal['user_declared', 'system_computed', 'agent_inferred'] = 'user_declared',
        confidence: float | None = None, expires_at: Moment | None = None, derived_from: Many[str] = (),
        request: str = '') -> profile_memory_operations_corrections.RememberResult:
        """State a fact about a person: what they said, what a system computed, what an agent inferred."""
    def retract(self, id: str,
        type: Literal['fact', 'preference', 'interest', 'purchase', 'support', 'behavioral', 'campaign', 'form'],
        key: str, *, reason: str = '', request: str = '') -> profile_memory_operations_corrections.RetractResult:
        """Retract a fact, and everything derived from it."""
    def unretract(self, id: str) -> profile_memory_operations_corrections.UnretractResult:
        """Undo a retraction: the fact is back, and everything that went with it."""
    def variables(self, id: str, *, names: str = '',
        variables: Many[str] = ()) -> profile_memory_operations_variables.VariablesResult:
        """Resolve template variables, such as purchase.last_transaction.product_name."""

class _AsyncMemory:
    definitions = _Awaited(_Memory.definitions)
    fact = _Awaited(_Memory.fact)
    lineage = _Awaited(_Memory.lineage)
    of = _Awaited(_Memory.of)
    remember = _Awaited(_Memory.remember)
    retract = _Awaited(_Memory.retract)
    unretract = _Awaited(_Memory.unretract)
    variables = _Awaited(_Memory.variables)

class _Messages:
    """What happened to a message that a client sent."""
    def show(self, message_id: str, *, source: str = '') -> ask_message_status_operations.Message:
        """Show what happened to a message: its event, its person, what followed, or why it was refused."""

class _AsyncMessages:
    show = _Awaited(_Messages.show)

class _People:
    """Find, tag, merge and split people."""
    def erase(self, id: str, *, reason: str = '', dry_run: bool = False,
        request: str = '') -> operate_erasure_operations.EraseResult:
        """Erase a person for good, or count what that would remove."""
    def export(self, id: str) -> bytes:
        """Write everything that is stored about a person into one archive."""
    def find(self, *, text: str = '', segment: str = '', tag: str = '', group: str = '',
        seen_from: Moment | None = None, seen_before: Moment | None = None, when: str | Mapping[str, Any] = '',
        sort: Literal['last_seen', 'created', 'name'] = 'last_seen', reverse: bool = False, fields: Many[str] = (),
        cursor: str = '', limit: int = 25) -> ask_search_operations_people.PeopleFound:
        """Find people by part of a name, an address, an id or a phone number; without a text, those active last."""
    def list(self, *, cursor: str = '', limit: int = 100, identifier: str = '', tag: str = '', group: str = '',
        segment: str = '', when: str | Mapping[str, Any] = '') -> profile_people_operations_people.PeoplePage:
        """List people: all, or by identifier, tag, group, segment or a condition."""
    def merge(self, id: str, *, other: str, reason: str = '', dry_run: bool = False, force: bool = False,
        request: str = '') -> profile_people_operations_merges.MergeResult:
        """Merge two people into one; the older one stays."""
    def merge_preview(self, id: str, *, other: str) -> profile_people_operations_merges.MergeResult:
        """Preview the merge of two people, and any objection to it."""
    def names(self, *, people: Many[str]) -> profile_people_operations_names.Names:
        """Give the display names of up to 500 people."""
    def split(self, id: str, *, identifiers: Many[str], reason: str = '', dry_run: bool = False,
        request: str = '') -> profile_people_operations_merges.SplitResult:
        """Take identifiers, with their events, out of a person."""
    def tag(self, id: str, *, add: Many[str] = (), remove: Many[str] = (),
        request: str = '') -> profile_people_operations_tags.TagResult:
        """Add tags to a person, and remove tags."""
    def unmerge(self, id: str, *, reason: str = '', request: str = '') -> profile_people_operations_merges.SplitResult:
        """Undo a merge, as if the two people had never been merged."""

class _AsyncPeople:
    erase = _Awaited(_People.erase)
    export = _Awaited(_People.export)
    find = _Awaited(_People.find)
    list = _Awaited(_People.list)
    merge = _Awaited(_People.merge)
    merge_preview = _Awaited(_People.merge_preview)
    names = _Awaited(_People.names)
    split = _Awaited(_People.split)
    tag = _Awaited(_People.tag)
    unmerge = _Awaited(_People.unmerge)

class _Points:
    """Points that people earn and spend."""
    def adjust(self, id: str, *, points: int, request: str,
        reason: str) -> profile_points_operations_transactions.AdjustResult:
        """Give a person points or take some, with a reason."""
    def history(self, id: str, *, days: int = 30) -> profile_points_operations_tables.HistoryResult:
        """List a person's last days with what was earned, spent, adjusted and what expired on each."""
    def ledger(self, id: str, *, cursor: str = '', limit: int = 100) -> profile_points_operations_ledger.LedgerPage:
        """List the lines of a person's ledger of points, the newest first."""
    def of(self, id: str, *, as_of: Moment | None = None) -> profile_points_operations_balance.PointsView:
        """Show a person's points: balance, total earned, the newest days, and anomalies."""
    def preview(self, *, text: str, seconds: float = 2) -> decide_drafts_operations_points.PointsPreview:
        """Compute what people would have earned by tables of points that are being written, by rule."""
    def spend(self, id: str, *, points: int, request: str,
        reason: str = '') -> profile_points_operations_transactions.SpendResult:
        """Spend a person's points, if there are enough."""
    def tables(self) -> profile_points_operations_tables.TablesResult:
        """List what earns points, by version of the table, and the limits."""

class _AsyncPoints:
    adjust = _Awaited(_Points.adjust)
    history = _Awaited(_Points.history)
    ledger = _Awaited(_Points.ledger)
    of = _Awaited(_Points.of)
    preview = _Awaited(_Points.preview)
    spend = _Awaited(_Points.spend)
    tables = _Awaited(_Points.tables)

class _Quarantine:
    """Merges of people that wait for a review."""
    def list(self, *, cursor: str = '', limit: int = 100,
        status: str = 'open') -> profile_people_operations_merges.QuarantinePage:
        """List the merges of people that were set aside for review."""
    def review(self, id: str, *, join: bool) -> profile_people_operations_merges.DoubtfulJoin:
        """Decide about a merge that was set aside: merge, or keep apart."""

class _AsyncQuarantine:
    list = _Awaited(_Quarantine.list)
    review = _Awaited(_Quarantine.review)

class _Rejected:
    """Events that could not be recorded, and their correction."""
    def dismiss(self, id: str, *, reason: str = '') -> foundation_events_rejected.RejectedView:
        """Close an entry of the rejected log without recording it."""
    def list(self, *, cursor: str = '', limit: int = 100, status: str = '',
        code: str = '') -> foundation_events_operations_rejected.RejectedPage:
        """List what could not be recorded, newest first."""
    def resubmit(self, id: str, *, event: foundation_events_forms.NativeEvent | Mapping[str, Any] | None = None,
        payload: Any = UNSET) -> foundation_events_operations_resubmission.ResubmitResult:
        """Record a rejected event, corrected or as it is, and close its entry."""
    def show(self, id: str) -> foundation_events_rejected.RejectedView:
        """Show one entry of the rejected log with its payload."""

class _AsyncRejected:
    dismiss = _Awaited(_Rejected.dismiss)
    list = _Awaited(_Rejected.list)
    resubmit = _Awaited(_Rejected.resubmit)
    show = _Awaited(_Rejected.show)

class _Retention:
    """How long events are stored."""
    def preview(self, *, cursor: str = '', limit: int = 100) -> operate_retention_operations.RetentionPreview:
        """Show what the declared retention would erase now, a page of people at a time."""

class _AsyncRetention:
    preview = _Awaited(_Retention.preview)

class _RuleSets:
    """Which rules run on which events."""
    def list(self) -> decide_rules_operations_sets.SetsResult:
        """List the rule sets: which rules run on which events, in which order."""
    def remove(self, name: str) -> decide_rules_operations_sets.SetWriteResult:
        """Remove a rule set: its rules no longer run, unless another set names them."""
    def write(self, name: str, *, events: Many[str], rules: Many[str], policy: Literal['all', 'first'] = 'all',
        record: Literal['matched', 'all'] = 'matched', existing: bool = False, historical: bool = False,
        description: str = '') -> decide_rules_operations_sets.SetWriteResult:
        """Write a rule set. It is in force at once, and its log has every change."""

class _AsyncRuleSets:
    list = _Awaited(_RuleSets.list)
    remove = _Awaited(_RuleSets.remove)
    write = _Awaited(_RuleSets.write)

class _Rules:
    """Rules, their versions, and why one matches."""
    def activate(self, id: str, *, version: int, note: str = '', untested: bool = False,
        changed_max: float | None = None, seen: str = '') -> decide_rules_operations_versions.MoveResult:
        """Activate a version of a rule; the one active before is retired in the same commit."""
    def gate(self, id: str, version: int) -> decide_rules_operations_versions.GateResult:
        """Show whether the newest what-if of a version allows its activation."""
    def list(self, *, cursor: str = '', limit: int = 100,
        state: Literal['', 'draft', 'tested', 'active', 'retired'] = '') -> decide_rules_operations_rules.RulesPage:
        """List rules: which version is active, which is the newest, and which sets name them."""
    def log(self, id: str, *, cursor: str = '', limit: int = 100) -> decide_rules_operations_rules.LogPage:
        """Show the state of each version of a rule, since when, and by whom."""
    def retire(self, id: str, *, version: int | None = None,
        note: str = '') -> decide_rules_operations_versions.MoveResult:
        """Retire a version of a rule, so that it no longer counts."""
    def shadow(self, id: str, *, version: int, note: str = '') -> decide_rules_operations_shadows.ShadowResult:
        """Run a tested version on live events beside the active one, without any effect."""
    def shadow_report(self, id: str, *, start: Moment | None = None, stop: Moment | None = None,
        version: int | None = None) -> decide_rules_operations_shadows.Report:
        """Compare the answers of a shadow on live events with those that counted."""
    def show(self, id: str, *, version: int | None = None,
        at: Moment | None = None) -> decide_rules_operations_rules.RuleView:
        """Show a version of a rule: the active one, one by its number, or the one in force at an instant."""
    def tested(self, id: str, *, version: int, note: str = '') -> decide_rules_operations_versions.MoveResult:
        """Mark a version as tested, so that it can be activated."""
    def versions(self, id: str, *, cursor: str = '', limit: int = 100) -> decide_rules_operations_rules.VersionsPage:
        """List the versions of a rule that were written, and the state of each."""
    def why(self, id: str, rule: str, *, version: int | None = None) -> decide_rules_operations_decisions.WhyResult:
        """Explain, condition by condition, why a rule matches a person as they are now, or why not."""
    def write(self, id: str, *, rule: Mapping[str, Any], events: Many[str] = (),
        expected: int | None = None) -> decide_rules_operations_versions.WriteResult:
        """Write a rule, or a new version of it, as a draft. A version never changes."""

class _AsyncRules:
    activate = _Awaited(_Rules.activate)
    gate = _Awaited(_Rules.gate)
    list = _Awaited(_Rules.list)
    log = _Awaited(_Rules.log)
    retire = _Awaited(_Rules.retire)
    shadow = _Awaited(_Rules.shadow)
    shadow_report = _Awaited(_Rules.shadow_report)
    show = _Awaited(_Rules.show)
    tested = _Awaited(_Rules.tested)
    versions = _Awaited(_Rules.versions)
    why = _Awaited(_Rules.why)
    write = _Awaited(_Rules.write)

class _Search:
    """Events and decisions, found by what is in them."""
    def correlate(self, *, id: str = '', rule: str = '',
        limit: int = 100) -> ask_search_operations_correlate.Correlated:
        """Show everything linked to an event, a decision, a mail, a rule or an object."""
    def find(self, *, start: Moment | None = None, stop: Moment | None = None, text: str = '',
        kind: Literal['', 'event', 'decision'] = '', type: str = '', person: str | None = None, rule: str = '',
        status: Literal['', 'Approved', 'Rejected', 'Review', 'Matched', 'NoMatch', 'Error'] = '', facets: bool = False,
        cursor: str = '', limit: int = 20) -> ask_search_operations_find.Found:
        """Find events and decisions by words, type, person, rule, status and time."""
    def status(self) -> ask_search_operations_index.SearchStatus:
        """Show how far the search index has come, and how large it is."""
    def sync(self, *, rebuild: bool = False, limit: int = 100000) -> ask_search_operations_index.SearchStatus:
        """Bring the search index up to date, or build it anew."""
    def timeline(self, id: str, *, cursor: str = '', limit: int = 20, start: Moment | None = None,
        stop: Moment | None = None) -> ask_search_operations_timeline.TimelinePage:
        """Show a person's events with what caused each and what followed from it."""

class _AsyncSearch:
    correlate = _Awaited(_Search.correlate)
    find = _Awaited(_Search.find)
    status = _Awaited(_Search.status)
    sync = _Awaited(_Search.sync)
    timeline = _Awaited(_Search.timeline)

class _Segments:
    """Who belongs to which segment, and why."""
    def leaving(self, name: str, *, within: str = '1d',
        cursor: str = '') -> profile_segments_operations_members.LeavingResult:
        """List the members who will soon leave a segment if nothing happens."""
    def list(self) -> profile_segments_operations_definitions.SegmentDefinitionsResult:
        """List the segments in force and what each is made of."""
    def members(self, name: str, *, cursor: str = '',
        limit: int = 100) -> profile_segments_operations_members.MembersResult:
        """List the members of a segment."""
    def of(self, id: str, *, as_of: Moment | None = None) -> profile_segments_operations_person.SegmentsResult:
        """Show which segments a person belongs to, now or at an instant."""
    def preview(self, *, text: str, name: str = '',
        seconds: float = 2) -> decide_drafts_operations_segments.SegmentPreview:
        """Count the people whom a segment that is being written would have now, and show ten of them."""
    def refresh(self) -> foundation_jobs_operations.JobView:
        """Check everybody's segments again, in a job."""
    def sizes(self, *, name: str = '', seconds: float = 2) -> profile_segments_operations_sizes.SizesResult:
        """Count the members of each segment, by their index."""
    def why(self, id: str, segment: str, *,
        as_of: Moment | None = None) -> profile_segments_operations_person.SegmentResult:
        """Explain why a person belongs to a segment, or why not."""

class _AsyncSegments:
    leaving = _Awaited(_Segments.leaving)
    list = _Awaited(_Segments.list)
    members = _Awaited(_Segments.members)
    of = _Awaited(_Segments.of)
    preview = _Awaited(_Segments.preview)
    refresh = _Awaited(_Segments.refresh)
    sizes = _Awaited(_Segments.sizes)
    why = _Awaited(_Segments.why)

class _Streaks:
    """Days in a row on which a person was active."""
    def days(self, id: str, *, start: str | None = None, stop: str | None = None,
        first_events: bool = True) -> profile_streaks_operations.DaysResult:
        """List the local days on which a person was active, with what was done and earned."""
    def of(self, id: str, *, as_of: Moment | None = None,
        known: Literal['then', 'now'] = 'then') -> profile_streaks_operations.StreaksResult:
        """Show a person's streaks, now or as they stood at an instant."""
    def preview(self, *, text: str, name: str = '',
        seconds: float = 2) -> decide_drafts_operations_streaks.StreakPreview:
        """Compute a streak that is being written from people's events, and show who would have the longest."""

class _AsyncStreaks:
    days = _Awaited(_Streaks.days)
    of = _Awaited(_Streaks.of)
    preview = _Awaited(_Streaks.preview)

class _Suppression:
    """Addresses that get no mail of any kind."""
    def add(self, *, address: str, reason: Literal['bounce', 'complaint', 'manual', 'import'] = 'manual',
        note: str = '') -> reach_consent_operations_suppression.SuppressedAddress:
        """Send no more mail of any kind to an address."""
    def get(self, address: str) -> reach_consent_operations_suppression.SuppressedAddress:
        """Show why an address gets no mail."""
    def import_(self, *, addresses: Many[str], reason: Literal['bounce', 'complaint', 'manual', 'import'] = 'import',
        note: str = '') -> reach_consent_operations_suppression.ImportResult:
        """Suppress the addresses of another system's list."""
    def lift(self, address: str, *, reason: str) -> reach_consent_operations_suppression.LiftResult:
        """Let an address get mail again, with a reason."""
    def list(self, *, cursor: str = '', limit: int = 100) -> reach_consent_operations_suppression.SuppressionPage:
        """List the addresses that get no mail of any kind."""

class _AsyncSuppression:
    add = _Awaited(_Suppression.add)
    get = _Awaited(_Suppression.get)
    import_ = _Awaited(_Suppression.import_)
    lift = _Awaited(_Suppression.lift)
    list = _Awaited(_Suppression.list)

class _Webhooks:
    """Destinations of webhooks, and whether calls to them succeed."""
    def deliveries(self, *, cursor: str = '', limit: int = 100, destination: str = '',
        state: Literal['delivered', 'failed'] | None = None) -> foundation_webhooks_operations_deliveries.DeliveryPage:
        """List attempts to call other systems, the newest first: the last 1,000 that arrived and the last 1,000 that did not, of two weeks."""
    def delivery(self, id: str) -> foundation_webhooks_operations_deliveries.Delivery:
        """Show what was sent in an attempt, and what was answered."""
    def destinations(self) -> foundation_webhooks_operations_destinations.DestinationList:
        """List the destinations of webhooks: whether calls succeed, and how many wait."""
    def presets(self) -> foundation_webhooks_operations_requests.ReadyMadeList:
        """List the destinations that ship ready-made, each with its text for the section `destinations`."""
    def preview(self, name: str, *, payload: Mapping[str, Any] | None = None, event: str | None = None,
        person: str | None = None) -> foundation_webhooks_operations_requests.RequestPreview:
        """Fill in the request of a destination, and send nothing."""
    def send_again(self, id: str) -> foundation_webhooks_operations_deliveries.SentAgain:
        """Send the call of a delivery again, now: of one that waits, was given up on, or has arrived."""
    def start(self, name: str) -> foundation_webhooks_operations_destinations.Changed:
        """Resume calls to a destination that was stopped or paused itself."""
    def stop(self, name: str, *, why: str = '') -> foundation_webhooks_operations_destinations.Changed:
        """Stop calls to a destination: calls that are due are parked."""
    def test(self, name: str, *, person: str,
        payload: Mapping[str, Any] | None = None) -> foundation_webhooks_operations_requests.RequestTest:
        """Send a destination one call that is marked as a test."""

class _AsyncWebhooks:
    deliveries = _Awaited(_Webhooks.deliveries)
    delivery = _Awaited(_Webhooks.delivery)
    destinations = _Awaited(_Webhooks.destinations)
    presets = _Awaited(_Webhooks.presets)
    preview = _Awaited(_Webhooks.preview)
    send_again = _Awaited(_Webhooks.send_again)
    start = _Awaited(_Webhooks.start)
    stop = _Awaited(_Webhooks.stop)
    test = _Awaited(_Webhooks.test)

class _WhatIf:
    """Try a rule or definitions on history."""
    def cancel(self, id: str) -> decide_whatif_views.WhatIfView:
        """Cancel a what-if: it stops where it was last noted, keeps its counts, and can be resumed."""
    def compare(self, *, one: str, other: str) -> decide_whatif_operations_results.Comparison:
        """Compare two saved what-ifs: the same history under two candidates, or before and after."""
    def list(self, *, cursor: str = '', limit: int = 100) -> decide_whatif_operations_results.SavedPage:
        """List what-ifs: those among the newest jobs, and those that were saved."""
    def resume(self, id: str) -> decide_whatif_views.WhatIfView:
        """Resume a what-if that was cancelled or has failed where it stopped."""
    def run(self, *, rule: str | None = None, version: int | None = None, content: Mapping[str, Any] | None = None,
        definitions: str = '', file: str = '', against: int | None = None,
        baseline: Literal['reckoned', 'recorded'] = 'reckoned', historical: Literal['all', 'by_set'] = 'all',
        start: Moment | None = None, stop: Moment | None = None, since: str | None = None, people: Many[str] = (),
        types: Many[str] = (), samples: int = 20, save: bool = False, note: str = '',
        wait: bool = False) -> decide_whatif_views.WhatIfView:
        """Try a rule or definitions on history, in a sandbox, and show what would have been different."""
    def status(self, id: str) -> decide_whatif_views.WhatIfView:
        """Show a what-if: its progress, and its result once it is done."""

class _AsyncWhatIf:
    cancel = _Awaited(_WhatIf.cancel)
    compare = _Awaited(_WhatIf.compare)
    list = _Awaited(_WhatIf.list)
    resume = _Awaited(_WhatIf.resume)
    run = _Awaited(_WhatIf.run)
    status = _Awaited(_WhatIf.status)

class Operations:
    """Every operation: those of a group by its name, and those that are in none."""
    def __init__(self, declared: Iterable[Operation] | None = None) -> None: ...
    def call(self, call: Call[Answer], values: Mapping[str, Any], /) -> Answer: ...
    def catalogue(self) -> foundation_events_operations_catalogue.CatalogueView:
        """List the projections, policies, operations and kinds of identifiers in force."""
    def doctor(self) -> operate_doctor_operations.DoctorResult:
        """Look whether all is well: what waits, the clock, damage, checksums, definitions that are not applied."""
    def person(self, id: str, *, as_of: Moment | None = None, timeline: int = 20,
        sources: bool = False) -> profile_people_operations_person.PersonView:
        """Show everything known about a person."""
    accounts: _Accounts
    alerts: _Alerts
    analytics: _Analytics
    audit_log: _AuditLog
    broadcasts: _Broadcasts
    consent: _Consent
    decisions: _Decisions
    definitions: _Definitions
    effects: _Effects
    erasures: _Erasures
    events: _Events
    exports: _Exports
    features: _Features
    feedback: _Feedback
    gallery: _Gallery
    inbox: _Inbox
    interests: _Interests
    jobs: _Jobs
    journeys: _Journeys
    keys: _Keys
    leaderboards: _Leaderboards
    mail: _Mail
    memory: _Memory
    messages: _Messages
    people: _People
    points: _Points
    quarantine: _Quarantine
    rejected: _Rejected
    retention: _Retention
    rule_sets: _RuleSets
    rules: _Rules
    search: _Search
    segments: _Segments
    streaks: _Streaks
    suppression: _Suppression
    webhooks: _Webhooks
    what_if: _WhatIf

class AsyncOperations:
    """Every operation, to be awaited."""
    def __init__(self, declared: Iterable[Operation] | None = None) -> None: ...
    async def call(self, call: Call[Answer], values: Mapping[str, Any], /) -> Answer: ...
    catalogue = _Awaited(Operations.catalogue)
    doctor = _Awaited(Operations.doctor)
    person = _Awaited(Operations.person)
    accounts: _AsyncAccounts
    alerts: _AsyncAlerts
    analytics: _AsyncAnalytics
    audit_log: _AsyncAuditLog
    broadcasts: _AsyncBroadcasts
    consent: _AsyncConsent
    decisions: _AsyncDecisions
    definitions: _AsyncDefinitions
    effects: _AsyncEffects
    erasures: _AsyncErasures
    events: _AsyncEvents
    exports: _AsyncExports
    features: _AsyncFeatures
    feedback: _AsyncFeedback
    gallery: _AsyncGallery
    inbox: _AsyncInbox
    interests: _AsyncInterests
    jobs: _AsyncJobs
    journeys: _AsyncJourneys
    keys: _AsyncKeys
    leaderboards: _AsyncLeaderboards
    mail: _AsyncMail
    memory: _AsyncMemory
    messages: _AsyncMessages
    people: _AsyncPeople
    points: _AsyncPoints
    quarantine: _AsyncQuarantine
    rejected: _AsyncRejected
    retention: _AsyncRetention
    rule_sets: _AsyncRuleSets
    rules: _AsyncRules
    search: _AsyncSearch
    segments: _AsyncSegments
    streaks: _AsyncStreaks
    suppression: _AsyncSuppression
    webhooks: _AsyncWebhooks
    what_if: _AsyncWhatIf
