"""The development page of templates: each as it would go to somebody, made again when its files change."""

from __future__ import annotations

from threadline.capabilities.reach.inbox.frame import frame
from threadline.capabilities.reach.inbox.operations import refuse_elsewhere
from threadline.kernel.ports import Ports
from threadline.kernel.public_route import PublicAnswer, PublicRequest, PublicRoute

PATH = "/dev/mail"
_BODY = """
<main class="panes">
<section aria-label="Templates"><ul id="list" class="rows"></ul>
<p id="none" class="empty" hidden>No template is declared yet.</p></section>
<section aria-label="Preview"><div class="bar">
<input id="person" type="search" placeholder="For whom, such as user_id:42" aria-label="For whom">
<input id="event" type="search" placeholder="Event id" aria-label="Event id"></div>
<div class="error" id="warnings" role="status"></div>
<div id="mail" class="mail"><p class="empty">Choose a template.</p></div></section>
</main>
"""
_SCRIPT = """
const SECONDS = 1
const list = document.getElementById('list')
const place = (id) => document.getElementById(id)
let chosen = new URLSearchParams(location.search).get('template') ?? ''
let seen = null
for (const name of ['person', 'event']) {
  place(name).value = new URLSearchParams(location.search).get(name) ?? ''
  place(name).addEventListener('change', () => show().catch(problem))
}
const forWhom = () => Object.fromEntries(['person', 'event'].map((name) => [name, place(name).value.trim()]))
function problem(error) {
  seen = null
  place('warnings').replaceChildren(make('p', { textContent: error.message }))
}
function headersOf(raw) {
  const lines = raw.split('\\r\\n\\r\\n', 1)[0].replace(/\\r\\n[ \\t]+/g, ' ').split('\\r\\n')
  return lines.map((line) => {
    const [name, ...value] = line.split(':')
    return { name, value: value.join(':').trim() }
  })
}
async function show() {
  if (!chosen) return
  const query = Object.entries({ template: chosen, ...forWhom() }).filter(([, value]) => value)
  history.replaceState(null, '', `?${new URLSearchParams(query)}`)
  const mail = await api(`/v1/mail/templates/${encodeURIComponent(chosen)}/preview`, forWhom())
  failed()
  // The time in its head is another one each time; what else differs is new.
  const now = JSON.stringify([mail.version, mail.recipient, mail.subject, mail.html, mail.text, mail.warnings])
  if (now === seen) return
  seen = now
  place('warnings').replaceChildren(...mail.warnings.map((text) => make('p', { textContent: text })))
  showMail(place('mail'), { subject: mail.subject, sender: mail.sender, to: mail.recipient, html: mail.html,
    text: mail.text, raw: mail.message, headers: headersOf(mail.message),
    links: Array.from(new DOMParser().parseFromString(mail.html, 'text/html').links, ({ href }) => href) })
}
function row(template) {
  const part = (className, textContent) => make('span', { className, textContent, title: textContent })
  const choose = () => {
    chosen = template.name
    mark()
    show().catch(problem)
  }
  const made = make('li', {}, make('button', { type: 'button', onclick: choose }, part('subject', template.name),
    part('quiet', template.subject), part('quiet', template.transactional ? 'transactional' : template.topic)))
  made.dataset.name = template.name
  return made
}
function mark() {
  for (const row of list.children) row.firstChild.setAttribute('aria-current', row.dataset.name === chosen)
}
async function begin() {
  const { templates } = await api('/v1/mail/templates')
  list.replaceChildren(...templates.map(row))
  place('none').hidden = templates.length > 0
  mark()
}
async function keepFresh() {
  if (!document.hidden && !document.getElementById('login').open) await show().catch(problem)
  setTimeout(keepFresh, SECONDS * 1000)
}
begin().then(keepFresh).catch(failed)
"""


def _show(engine: Ports, request: PublicRequest) -> PublicAnswer:
    refuse_elsewhere(engine)
    return frame(PATH, "Templates · Threadline", _BODY, _SCRIPT)


PAGE = PublicRoute("mail_page", "Show mail templates as they are being written.", "GET", PATH, _show)
