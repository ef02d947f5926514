"""Mistakes in declarations of features: what is written, and the whole message."""

from __future__ import annotations

from threadline.capabilities.profile.features.definition import AGGREGATES

FILE = "threadline.yaml"

# Each case: what is written, and the whole message.
MISTAKES: dict[str, tuple[str, str]] = {
    "unknown section": (
        "feature: {}",
        "1: top level: unknown key 'feature'; did you mean 'features'?",
    ),
    "unknown key": (
        "features:\n  spend:\n    aggregate: count\n    events: buy\n    windw: 30d",
        "5: feature 'spend': unknown key 'windw'; did you mean 'window'?",
    ),
    "misspelt aggregate key": (
        "features:\n  spend:\n    agregate: sum",
        "3: feature 'spend': unknown key 'agregate'; did you mean 'aggregate'?",
    ),
    "no aggregate": (
        "features:\n  spend:\n    events: buy",
        "2: feature 'spend' needs `aggregate`: how events become a value, such as count",
    ),
    "unknown aggregate": (
        "features:\n  spend: {aggregate: summ, events: buy, of: total}",
        "2: feature 'spend': `aggregate` cannot be 'summ'; did you mean 'sum'?",
    ),
    "far from any aggregate": (
        "features:\n  spend: {aggregate: kurtosis}",
        "2: feature 'spend': `aggregate` cannot be 'kurtosis'; choose from " + ", ".join(sorted(AGGREGATES)),
    ),
    "no events": (
        "features:\n  visits: {aggregate: count}",
        "2: feature 'visits': 'count' needs `events`: add `events: purchase_completed`, a list, or `events: any`",
    ),
    "no value": (
        "features:\n  spend: {aggregate: sum, events: {buy: null}}",
        "2: feature 'spend': 'sum' needs the path of a value; add `of: total`, or `value` under each event",
    ),
    "an option of others": (
        "features:\n  visits:\n    aggregate: count\n    events: page\n    currency: currency",
        "5: feature 'visits': 'count' takes no `currency`; remove it, or use one of sum, average, min, max",
    ),
    "a duration": (
        "features:\n  visits: {aggregate: count, events: page, window: 30 days}",
        (
            "2: feature 'visits': `window` must be a duration from 1m to 10y, such as 30d: '30 days' is not a "
            "duration; write it like 30d, 12h or 1y; or write `lifetime` for all time"
        ),
    ),
    "a bare number of days": (
        "features:\n  visits: {aggregate: count, events: page, stale_after: 30}",
        "2: feature 'visits': `stale_after` must be a duration, such as 30d",
    ),
    "a window too long": (
        "features:\n  visits: {aggregate: count, events: page, window: 11y}",
        (
            "2: feature 'visits': `window` must be a duration from 1m to 10y, such as 30d; or write `lifetime` "
            "for all time"
        ),
    ),
    "unknown operator": (
        "features:\n  visits: {aggregate: count, events: page, where: {price: {above: 3}}}",
        (
            "2: feature 'visits': `where` on 'price': unknown operator 'above'; choose from contains, ends_with, eq, "
            "equals, exists, greater_than, greater_than_or_equal, gt, gte, in, less_than, less_than_or_equal, lt, lte, "
            "ne, not_contains, not_equals, not_in, regex, starts_with"
        ),
    ),
    "a country that YAML takes for a no": (
        "features:\n  visits: {aggregate: count, events: page, where: {country: [SE, NO]}}",
        "2: YAML reads NO as false; write false, or put 'NO' in quotes",
    ),
    "null in a condition": (
        "features:\n  visits: {aggregate: count, events: page, where: {price: null}}",
        (
            "2: feature 'visits': `where` on 'price': "
            "`equals` takes no null; ask with `exists: false` for what is missing or null"
        ),
    ),
    "a bound that is no number": (
        "features:\n  visits: {aggregate: count, events: page, where: {price: {gt: true}}}",
        "2: feature 'visits': `where` on 'price': `gt` takes a number or a text; true and false have no order",
    ),
    "exists": (
        "features:\n  visits: {aggregate: count, events: page, where: {price: {exists: 1}}}",
        "2: feature 'visits': `where` on 'price': `exists` takes true or false",
    ),
    "not as an operator": (
        "features:\n  visits: {aggregate: count, events: page, where: {price: {not: 3}}}",
        "2: feature 'visits': `where` on 'price': unknown operator 'not'; write `not_equals`, or `not_in` for a list",
    ),
    "no operator": (
        "features:\n  visits: {aggregate: count, events: page, where: {price: {}}}",
        (
            "2: feature 'visits': `where` on 'price': "
            "a condition has one operator, such as `equals`; put further ones under `all`"
        ),
    ),
    "a field without a name": (
        "features:\n  visits: {aggregate: count, events: page, where: {order..id: 3}}",
        (
            "2: feature 'visits': `where` on 'order..id': "
            "a field is a path such as features.monetary_total or event.properties.total, or a list of its steps"
        ),
    ),
    "an empty where": (
        "features:\n  visits: {aggregate: count, events: page, where: {}}",
        "2: feature 'visits': `where` must be a mapping such as {category: shoes}, or a list of conditions",
    ),
    "a tree that needs a list around it": (
        "features:\n  a:\n    aggregate: count\n    events: x\n    where:\n      any: [{field: event.key, eq: k}]",
        "6: feature 'a': `where` on 'any': write a tree as an item of a list, `- any: …`",
    ),
    "a field of the person in where": (
        "features:\n  a:\n    aggregate: count\n    events: x\n    where:\n    - not: {field: tags, contains: pro}",
        "6: feature 'a': `where` cannot read tags; name a field of the event other than event.id and event.recorded_at",
    ),
    "when it was recorded in where": (
        "features:\n  a:\n    aggregate: count\n    events: x\n    where: [{field: event.recorded_at, exists: true}]",
        (
            "5: feature 'a': `where` cannot read event.recorded_at; "
            "name a field of the event other than event.id and event.recorded_at"
        ),
    ),
    "a mistake in the second tree of where": (
        (
            "features:\n  a:\n    aggregate: count\n    events: x\n    where:\n    - {field: event.key, eq: k}\n"
            "    - any:\n      - {field: event.key, lt: k}\n      - {field: event.key, no_in: [k]}"
        ),
        "9: feature 'a': `where`: unknown operator 'no_in'; did you mean 'not_in'?",
    ),
    "a ratio of one": (
        "features:\n  rate: {aggregate: ratio, numerator: has_purchased}",
        "2: feature 'rate': 'ratio' needs `denominator`: the name of a feature, or aggregate and events in place",
    ),
    "a ratio of something unknown": (
        "features:\n  rate: {aggregate: ratio, numerator: has_purchased, denominator: recency_day}",
        "2: feature 'rate' is built on 'recency_day', which is not declared; did you mean 'recency_days'?",
    ),
    "a ratio of texts": (
        (
            "features:\n  plan: {aggregate: last, events: page, of: plan}\n"
            "  rate: {aggregate: ratio, numerator: plan, denominator: has_purchased}"
        ),
        "3: feature 'rate' is built on 'plan', which need not be a number; build it on a count or a sum",
    ),
    "a ratio of what is empty in words": (
        (
            "features:\n  spend: {aggregate: average, events: buy, of: v,\n    empty: none yet}\n"
            "  rate: {aggregate: ratio, numerator: spend, denominator: has_purchased}"
        ),
        "3: feature 'rate' is built on 'spend', and computes with its `empty`; write a number or null",
    ),
    "a score of what is empty in words": (
        (
            "features:\n  spend: {aggregate: average, events: buy, of: v, empty: 1e3}\n"
            "  score: {aggregate: score, parts: {spend: {weight: 1, half: 1}}}"
        ),
        "2: feature 'score' is built on 'spend', and computes with its `empty`; write a number or null",
    ),
    "a ratio in place that is empty in words": (
        (
            "features:\n  rate:\n    aggregate: ratio\n    numerator: has_purchased\n"
            "    denominator: {aggregate: sum, events: buy, of: v, empty: '0'}"
        ),
        "5: feature 'rate' is built on 'rate.denominator', and computes with its `empty`; write a number or null",
    ),
    "a ratio of what is empty beyond all numbers": (
        (
            f"features:\n  spend: {{aggregate: average, events: buy, of: v, empty: {10**400}}}\n"
            "  rate: {aggregate: ratio, numerator: spend, denominator: has_purchased}"
        ),
        "2: feature 'rate' is built on 'spend', and computes with its `empty`; write a smaller number or null",
    ),
    "a circle": (
        (
            "features:\n  a: {aggregate: ratio, numerator: b, denominator: has_purchased}\n"
            "  b: {aggregate: score, parts: {a: {weight: 1, half: 1}}}"
        ),
        "2: features are built on each other in a circle: a → b → a; break it",
    ),
    "a ratio of itself": (
        "features:\n  a: &a\n    aggregate: ratio\n    numerator: has_purchased\n    denominator: *a",
        "5: feature 'a': `denominator` is an alias of what it stands in; write it out",
    ),
    "a ratio within itself": (
        (
            "features:\n  a: &a\n    aggregate: ratio\n    denominator: has_purchased\n    numerator:\n"
            "      aggregate: ratio\n      numerator: has_purchased\n      denominator: *a"
        ),
        "8: feature 'a': `numerator.denominator` is an alias of what it stands in; write it out",
    ),
    "half a character in an event": (
        'features:\n  a: {aggregate: count,\n    events: "\\ud800"}',
        "3: this text holds half a character (\\ud800 to \\udfff); write the whole one",
    ),
    "half a character in what is empty": (
        'features:\n  a: {aggregate: last, events: x, of: v, empty: "x\\udfff"}',
        "2: this text holds half a character (\\ud800 to \\udfff); write the whole one",
    ),
    "half a character in a name": (
        '"\\ud83d": {}',
        "1: this text holds half a character (\\ud800 to \\udfff); write the whole one",
    ),
    "a feature that another needs": (
        "features:\n  recency_days: false",
        (
            "shipped.yaml: feature 'engagement_score' needs 'recency_days', which threadline.yaml:2 leaves out; "
            "leave out 'engagement_score' as well, or declare it anew"
        ),
    ),
    "leaving out what does not ship": (
        "features:\n  recency_day: false",
        "2: feature 'recency_day' does not ship and cannot be left out; did you mean 'recency_days'?",
    ),
    "a name": (
        "features:\n  Spend-30: {aggregate: count, events: page}",
        "2: 'Spend-30' is not a valid feature name; use lower-case letters, digits, - and _, such as spend_30d",
    ),
    "a key twice": (
        "features:\n  a: {aggregate: count, events: page}\n  a: {aggregate: any, events: page}",
        "3: `features`: 'a' is listed twice; keep one",
    ),
    "no mapping": (
        "features:\n  - spend",
        "2: `features` must be a mapping, `key: value` on lines of its own",
    ),
    "no YAML": (
        "features:\n  a: [1, 2",
        "2: this is not YAML: expected ',' or ']', but got '<stream end>'",
    ),
    "an event of ours": (
        "features:\n  a: {aggregate: count, events: threadline.timer_fired}",
        "2: feature 'a': `events`: 'threadline.timer_fired' is an event of Threadline's own and feeds no features",
    ),
    "any beside others": (
        "features:\n  a: {aggregate: count, events: [any, page]}",
        "2: feature 'a': `any` stands alone; remove the other events, or remove any",
    ),
    "an unknown option of any": (
        "features:\n  a: {aggregate: count, events: {any: {nonsense: 5}}}",
        "2: feature 'a': `events.any`: unknown key 'nonsense'; choose from sign, value, where",
    ),
    "any without a value": (
        "features:\n  a: {aggregate: sum, events: {any: {sign: -1}}}",
        "2: feature 'a': 'sum' needs the path of a value; add `of: total`, or `value` under each event",
    ),
    "any mapped beside others": (
        "features:\n  a: {aggregate: count, events: {any: {where: {a: 1}}, page: null}}",
        "2: feature 'a': `any` stands alone; remove the other events, or remove any",
    ),
    "except without any": (
        "features:\n  a: {aggregate: count, events: page, except: [x]}",
        "2: feature 'a': `except` goes with `events: any` only; remove it",
    ),
    "a sign": (
        "features:\n  a: {aggregate: sum, of: total, events: {buy: {sign: -2}}}",
        "2: feature 'a': `events.buy.sign` must be 1 or -1",
    ),
    "a sign on a text": (
        "features:\n  a: {aggregate: last, of: total, events: {buy: {sign: -1}}}",
        "2: feature 'a': 'last' takes no `sign`; remove it, or use sum",
    ),
    "a path": (
        "features:\n  a: {aggregate: last, of: order..total, events: buy}",
        (
            "2: feature 'a': `of` must be the path of a property, such as `total`, `order.total` or "
            "`context.ip`, and 'order..total' is not"
        ),
    ),
    "a part": (
        "features:\n  a: {aggregate: score, parts: {recency_days: {weight: 3}}}",
        "2: feature 'a': `parts.recency_days` needs `half`, such as 14",
    ),
    "a rate": (
        "currencies:\n  total_in: USD\n  rates:\n    EUR: dear",
        (
            '4: `currencies`: `rates.EUR` must be a decimal above 0, such as "1.08": how much of `total_in` '
            "one is, and 'dear' is not"
        ),
    ),
    "rates into nothing": (
        "currencies:\n  rates: {}",
        "2: `currencies`: `rates` need a currency to convert into; add `total_in: USD`",
    ),
    "a currency": (
        "currencies: {total_in: usd}",
        "1: `currencies`: `total_in` must be the code of a currency in capitals, such as USD, and 'usd' is not",
    ),
    "a zone": (
        "timezone: Europe/Roma",
        "1: `timezone` must be an IANA name such as Europe/Rome, and 'Europe/Roma' is not",
    ),
    "a delay": (
        "campaigns: {ignored_after: a week}",
        (
            "1: `campaigns`: `ignored_after` must be a duration, such as 30d: 'a week' is not a duration; write "
            "it like 30d, 12h or 1y"
        ),
    ),
}
