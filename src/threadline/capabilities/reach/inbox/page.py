"""The page of the development inbox."""

from __future__ import annotations

from threadline.capabilities.reach.inbox.frame import frame
from threadline.capabilities.reach.inbox.operations import refuse_elsewhere
from threadline.kernel.ports import Ports
from threadline.kernel.public_route import PublicAnswer, PublicRequest, PublicRoute

PATH = "/dev/inbox"
_BODY = """
<main class="panes">
<section aria-label="Messages">
<div class="bar"><input id="to" type="search" placeholder="Search by recipient" aria-label="Search by recipient">
<button id="clear" type="button">Clear</button></div>
<ul id="list" class="rows"></ul><p id="none" class="empty" hidden>Nothing was sent yet.</p>
</section>
<section id="mail" class="mail" aria-label="Message"><p class="empty">Choose a message.</p></section>
</main>
"""
_SCRIPT = """
const SECONDS = 2
const list = document.getElementById('list')
const to = document.getElementById('to')
let chosen = new URLSearchParams(location.search).get('id') ?? ''
async function show(id) {
  chosen = id
  history.replaceState(null, '', `?id=${encodeURIComponent(id)}`)
  mark()
  showMail(document.getElementById('mail'), await api(`/v1/dev/inbox/${encodeURIComponent(id)}`))
}
function mark() {
  for (const row of list.children) row.firstChild.setAttribute('aria-current', row.dataset.id === chosen)
}
function row(message) {
  const part = (className, textContent) => make('span', { className, textContent, title: textContent })
  const button = make('button', { type: 'button', onclick: () => show(message.id).catch(failed) },
    part('to', message.to), part('quiet', message.at.slice(11, 19)), part('subject', message.subject || '(no subject)'),
    part('quiet', message.template))
  const made = make('li', {}, button)
  made.dataset.id = message.id
  return made
}
let seen = null
async function refresh() {
  const query = new URLSearchParams({ limit: 200, to: to.value.trim() })
  const { messages } = await api(`/v1/dev/inbox?${query}`)
  failed()
  const now = JSON.stringify(messages.map(({ id }) => id))
  if (now === seen) return
  seen = now
  list.replaceChildren(...messages.map(row))
  document.getElementById('none').hidden = messages.length > 0
  mark()
}
to.addEventListener('input', () => refresh().catch(failed))
document.getElementById('clear').addEventListener('click', async () => {
  if (!confirm('Remove all messages?')) return
  try {
    await api('/v1/dev/inbox/clear', {})
    document.getElementById('mail').replaceChildren(make('p', { className: 'empty', textContent: 'Choose a message.' }))
    await refresh()
  } catch (error) { failed(error) }
})
async function keepFresh() {
  if (!document.hidden && !document.getElementById('login').open) await refresh().catch(failed)
  setTimeout(keepFresh, SECONDS * 1000)
}
keepFresh()
if (chosen) show(chosen).catch(failed)
"""


def _show(engine: Ports, request: PublicRequest) -> PublicAnswer:
    refuse_elsewhere(engine)
    return frame(PATH, "Inbox · Threadline", _BODY, _SCRIPT)


PAGE = PublicRoute("inbox_page", "Show the development inbox.", "GET", PATH, _show)
