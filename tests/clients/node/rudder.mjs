// Makes calls with @rudderstack/rudder-sdk-node as it is; prints the errors that it reports.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const Analytics = createRequire(import.meta.url)('@rudderstack/rudder-sdk-node')

const { host, writeKey, calls, options = {} } = JSON.parse(readFileSync(0, 'utf8'))

const failed = []
const analytics = new Analytics(writeKey, {
  dataPlaneUrl: host,
  logLevel: 'none',
  errorHandler: (error) => failed.push(String(error)),
  ...options,
})
const delivered = calls.map(({ type, ...message }) => {
  if (message.timestamp) message.timestamp = new Date(message.timestamp)
  return new Promise((resolve) => analytics[type](message, resolve))
})
while (analytics.queue.length > 0 || analytics.pendingFlush) {
  const pending = analytics.pendingFlush
  await analytics.flush()
  await pending
  if (analytics.queue.length === 0) break
}
await Promise.all(delivered)
console.log(JSON.stringify(failed))
