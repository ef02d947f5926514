"""The public test kit: laws for stores and projections, seeded worlds, an auditor; nothing here runs in production.

`rehearsal` is for everybody: it tests journeys, mails and rules of your own over time, without a server. The others are
property-based tests and fixtures for those who write a capability, a projection, a policy or a store adapter. A seeded
world has realistic customers without a fixture file, and the laws try on it what a test of one example misses: shuffled
and duplicate events, merges, hostile payloads, replays.

    >>> from threadline.testing.world import World
    >>> events = list(World(seed=1, people=10).events(200))
    >>> len(events), events == list(World(seed=1, people=10).events(200))
    (200, True)

| module | for the tests of |
|---|---|
| `rehearsal` | your definitions: given these events, at this instant, these mails |
| `capability_laws` | a capability: `broken` names each law that it breaks |
| `projection_laws`, `policy_laws` | one projection, one policy |
| `store_laws` | a backend: a class of tests, which is pointed at the store |
| `world`, `scenarios`, `adversary` | anything: plausible events, hostile events, an attacker |
| `auditor` | the states of a whole store, recounted by code that shares nothing with the folds |
"""
