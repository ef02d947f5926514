// Sends events with the npm package cloudevents as it is, in the mode asked for; prints the answers.

import { readFileSync } from 'node:fs'

import { CloudEvent, HTTP, Mode, emitterFor, httpTransport } from 'cloudevents'

const { url, events, mode } = JSON.parse(readFileSync(0, 'utf8'))

const made = events.map((event) => new CloudEvent(event))
const answers = []
if (mode === 'batch') {
  // The package reads batches but has no emitter for them: the array is ours, each event in it is its own.
  const body = JSON.stringify(made.map((event) => JSON.parse(HTTP.structured(event).body)))
  const headers = { 'content-type': 'application/cloudevents-batch+json' }
  answers.push(await (await fetch(url, { method: 'POST', headers, body })).json())
} else {
  const emit = emitterFor(httpTransport(url), { mode: mode === 'binary' ? Mode.BINARY : Mode.STRUCTURED })
  for (const event of made) {
    const answer = await emit(event)
    answers.push(JSON.parse(answer.body))
  }
}
console.log(JSON.stringify(answers))
