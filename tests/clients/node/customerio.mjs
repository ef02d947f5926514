// Makes calls with @customerio/cdp-analytics-node as it is; prints the messages that it could not deliver.

import { readFileSync } from 'node:fs'

import { Analytics } from '@customerio/cdp-analytics-node'

const { host, writeKey, calls } = JSON.parse(readFileSync(0, 'utf8'))

const analytics = new Analytics({ host, writeKey })
const failed = []
analytics.on('error', (error) => failed.push(String(error.reason ?? error.code)))
for (const { type, ...message } of calls) {
  if (message.timestamp) message.timestamp = new Date(message.timestamp)
  analytics[type](message)
}
await analytics.closeAndFlush({ timeout: 100_000 })
console.log(JSON.stringify(failed))
