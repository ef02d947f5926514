"""The fifteen tools. Fourteen never change anything; `confirm` carries out what one of them has shown."""

from __future__ import annotations

from collections.abc import Mapping

from threadline.surfaces.mcp.tool import Call, Tool

CONFIRM = "confirm"
_NOTHING_YET = "Changes nothing: it shows what would happen and gives a token for `confirm`."


def _calls(**operations: str | Call) -> dict[str, Call]:
    return {value: call if isinstance(call, Call) else Call(call) for value, call in operations.items()}


_OF_PERSON = Call("decisions_list", renamed={"id": "person"}, needed=frozenset({"id"}))
_EVALUATE = Call("decisions_evaluate", fixed={"record": False}, tries=True)
_HISTORY = Call("what_if_run", fixed={"save": False}, tries=True)

TOOLS: tuple[Tool, ...] = (
    Tool(
        "find_person",
        "Find people",
        "Find people by part of a name, an address or an id (among `text`), or list them by identifier, tag, group, "
        "segment or condition, those in a segment, journey, broadcast, leaderboard or at the top of a feature. Answers "
        "have the `id` that other tools take.",
        "among",
        _calls(
            people="people_list",
            text="people_find",
            segment="segments_members",
            leaving_segment="segments_leaving",
            journey="journeys_people",
            broadcast="broadcasts_recipients",
            leaderboard="leaderboards_top",
            feature="features_top",
        ),
    ),
    Tool(
        "tell_about_person",
        "Tell about a person",
        "Tell what is known about one person: everything in short, or one aspect, now or `as_of` an instant.",
        "about",
        _calls(
            everything=Call("person", default={"timeline": 5}),
            features="features_of",
            segments="segments_of",
            memory="memory_of",
            fact="memory_fact",
            interests="interests_of",
            interest_summary="interests_summary",
            attribution="interests_attribution",
            points="points_of",
            points_ledger="points_ledger",
            points_history="points_history",
            streaks="streaks_of",
            active_days="streaks_days",
            mails="mail_history",
            journeys="journeys_of",
            journey_steps="journeys_history",
            consent="consent_of",
            alerts="alerts_of",
            leaderboard="leaderboards_standing",
            decisions=_OF_PERSON,
            variables="memory_variables",
        ),
    ),
    Tool(
        "timeline",
        "What happened",
        "Show what happened: to a person, or anywhere by words, type, rule, status and time; one event, what is linked "
        "to it, or what became of a message that was sent in.",
        "of",
        _calls(
            person="search_timeline",
            events="events_of",
            search="search_find",
            linked="search_correlate",
            event="events_show",
            message="messages_show",
            feed="events_feed",
        ),
    ),
    Tool(
        "explain",
        "Explain why or why not",
        "Explain why or why not: a person is in a segment, a rule matches a person, a decision was made, a fact is "
        "known, a mail was sent or was not (`no_mail`), an address is suppressed, two people should not be merged.",
        "what",
        _calls(
            segment="segments_why",
            rule="rules_why",
            decision="decisions_audit",
            fact="memory_lineage",
            mail="mail_sent",
            no_mail="mail_why_not",
            suppressed="suppression_get",
            merge="people_merge_preview",
        ),
        must_choose=True,
    ),
    Tool(
        "ask_analytics",
        "Ask analytics",
        "Ask a question about everybody: funnels, retention, trends, attribution, experiments, results of mails. "
        "Answers have the SQL that gave them, where it was SQL.",
        "question",
        _calls(mail_results="feedback_counters", mail_events="feedback_events"),
        must_choose=True,
        group="analytics",
    ),
    Tool(
        "try_rule",
        "Try a rule",
        "Try a rule, written or not: on one event or person (`event`), or on history in a sandbox (`history`; ask for "
        "its `status` until it is done). Nothing is recorded, nothing is sent.",
        "on",
        _calls(event=_EVALUATE, history=_HISTORY, status="what_if_status", tried="what_if_list"),
        must_choose=True,
    ),
    Tool(
        "diff_rule",
        "Compare rules",
        "Compare a version of a rule with another (`against`) or with what is in force, on history; compare two saved "
        "trials; or show how a shadow answered beside the active version.",
        "by",
        _calls(history=_HISTORY, status="what_if_status", trials="what_if_compare", shadow="rules_shadow_report"),
        must_choose=True,
    ),
    Tool(
        "list_definitions",
        "List definitions",
        "List what is defined: rules, segments, features, journeys, broadcasts, templates and more; kinds in the "
        "singular show one by its `id`, `name` or `template`.",
        "kind",
        _calls(
            rules="rules_list",
            rule="rules_show",
            rule_versions="rules_versions",
            rule_log="rules_log",
            rule_sets="rule_sets_list",
            segments="segments_list",
            features="features_list",
            journeys="journeys_list",
            journey="journeys_show",
            broadcasts="broadcasts_list",
            broadcast="broadcasts_show",
            templates="mail_templates",
            template="mail_template",
            alerts="alerts_list",
            alert="alerts_show",
            leaderboards="leaderboards_list",
            topics="consent_topics",
            facts="memory_definitions",
            points="points_tables",
            all="catalogue",
            changes="definitions_changes",
        ),
        must_choose=True,
    ),
    Tool(
        "propose_definition",
        "Propose a definition",
        "Propose a new version of a rule (as a draft), a rule set, an alert or a broadcast (as a draft), or another "
        "content of a draft of a broadcast. " + _NOTHING_YET + " Try a rule with `try_rule` first.",
        "kind",
        _calls(
            rule="rules_write",
            rule_set="rule_sets_write",
            alert="alerts_write",
            broadcast="broadcasts_create",
            edit_broadcast="broadcasts_edit",
        ),
        must_choose=True,
    ),
    Tool(
        "preview_mail",
        "Preview a mail",
        "Preview a mail filled in for a person, or the audience of a broadcast; count an `audience` before there is a "
        "broadcast; show a mail as it was sent. Nothing is sent.",
        "of",
        _calls(
            template="mail_preview",
            broadcast="broadcasts_preview",
            audience="broadcasts_audience",
            sent="mail_as_sent",
        ),
    ),
    Tool(
        "send_dry_run",
        "Show what would be sent",
        "Show the mail that one person would get, or the audience that a broadcast would go to. " + _NOTHING_YET,
        "what",
        _calls(
            mail=Call(
                "mail_send",
                preview="mail_preview",
                previewed={"id": "person", "template": "template", "variables": "variables", "event": "event"},
            ),
            broadcast=Call("broadcasts_start", preview="broadcasts_preview", previewed={"id": "id"}),
        ),
        must_choose=True,
    ),
    Tool(
        "change_person",
        "Propose a change of a person",
        "Propose to tag a person, remember or retract a fact, change consent, let them enter or leave a journey, give "
        "or spend points, merge or split people. " + _NOTHING_YET,
        "change",
        _calls(
            tag="people_tag",
            remember="memory_remember",
            retract="memory_retract",
            unretract="memory_unretract",
            consent=Call("consent_change", preview="consent_of", previewed={"id": "id"}),
            enter_journey="journeys_enter",
            exit_journey="journeys_exit",
            adjust_points="points_adjust",
            spend_points="points_spend",
            dismiss_alert="alerts_dismiss",
            unmerge="people_unmerge",
            merge=Call("people_merge", preview="people_merge_preview", previewed={"id": "id", "other": "other"}),
            split="people_split",
        ),
        must_choose=True,
    ),
    Tool(
        "check_operations",
        "Check operations",
        "Check how the system is doing: the doctor, queues, dead letters, effects of unknown outcome, jobs, rejected "
        "events, joins that wait for review, webhooks, suppressed addresses, erasures, search, the audit log.",
        "what",
        _calls(
            doctor="doctor",
            queues="effects_queues",
            dead_letters="effects_parked",
            unknown_effects="effects_unknown",
            jobs="jobs_list",
            job="jobs_show",
            rejected="rejected_list",
            rejected_event="rejected_show",
            quarantine="quarantine_list",
            webhooks="webhooks_destinations",
            suppression="suppression_list",
            erasures="erasures_list",
            search="search_status",
            retention="retention_preview",
            audit="audit_log_list",
        ),
        must_choose=True,
    ),
    Tool(
        "operate",
        "Propose an operation",
        "Propose to pause or resume a journey, broadcast or job, to send dead letters again, settle an unknown effect, "
        "resubmit a rejected event, decide about a join, move a rule through its states, suppress an address. "
        + _NOTHING_YET,
        "action",
        _calls(
            pause_journey="journeys_pause",
            resume_journey="journeys_resume",
            pause_broadcast="broadcasts_pause",
            resume_broadcast="broadcasts_resume",
            cancel_broadcast="broadcasts_cancel",
            pause_job="jobs_pause",
            resume_job="jobs_resume",
            cancel_job="jobs_cancel",
            redrive="effects_redrive",
            resolve_effect="effects_resolve",
            resubmit="rejected_resubmit",
            dismiss_rejected="rejected_dismiss",
            review_join="quarantine_review",
            mark_rule_tested="rules_tested",
            shadow_rule="rules_shadow",
            activate_rule="rules_activate",
            retire_rule="rules_retire",
            withdraw_alert="alerts_withdraw",
            suppress="suppression_add",
            lift_suppression="suppression_lift",
            stop_webhook="webhooks_stop",
            start_webhook="webhooks_start",
        ),
        must_choose=True,
    ),
)
"""All but `confirm`, in the order in which they are listed."""

BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in TOOLS}
