// Makes calls with @jitsu/js as it is, in the place of a server or of a page; prints what went wrong.

import { readFileSync } from 'node:fs'

import { jitsuAnalytics } from '@jitsu/js'

const { host, writeKey, user, traits, s2s } = JSON.parse(readFileSync(0, 'utf8'))

const failed = []
console.warn = console.error = (...line) => failed.push(line.join(' '))
const analytics = jitsuAnalytics({ host, writeKey, s2s, errorPolicy: 'throw' })
await analytics.identify(user, traits)
await analytics.page({ name: 'Home' })
await analytics.track('click', { n: 1, note: 'Zoë' })
await analytics.group('acme', { name: 'Acme' })
console.log(JSON.stringify(failed))
