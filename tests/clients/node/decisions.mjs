// Prints the hash of each decision, reckoned from an audit as a client receives it with the npm package canonicalize.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

import canonicalize from 'canonicalize'

// JSON.parse rounds an integer that no double holds: it becomes text first. Text that is there is passed over.
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g
const exact = (text) => text.replace(TOKEN, (token) =>
  /^-?\d+$/.test(token) && token !== String(Number(token)) ? `"${token}"` : token)

const { audits } = JSON.parse(readFileSync(0, 'utf8'))
console.log(JSON.stringify(audits.map((audit) => {
  const { decision, rule } = JSON.parse(exact(audit))
  const { engine, inputs, output, status, trace, wished } = decision
  const hashed = canonicalize({ content: rule, engine, inputs, output, status, trace, wished })
  return createHash('sha256').update(hashed).digest('hex')
})))
