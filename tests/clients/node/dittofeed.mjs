// Makes calls with @dittofeed/sdk-node as it is; prints what went wrong.

import { readFileSync } from 'node:fs'

import dittofeed from '@dittofeed/sdk-node'

const { host, writeKey, user, traits } = JSON.parse(readFileSync(0, 'utf8'))

const failed = []
process.on('unhandledRejection', (reason) => failed.push(String(reason)))
await dittofeed.DittofeedSdk.init({ writeKey, host })
dittofeed.DittofeedSdk.identify({ userId: user, traits })
dittofeed.DittofeedSdk.page({ userId: user, name: 'Home' })
dittofeed.DittofeedSdk.track({ userId: user, event: 'click', properties: { n: 1, note: 'Zoë' } })
await dittofeed.DittofeedSdk.flush()
console.log(JSON.stringify(failed))
