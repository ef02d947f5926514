"""The frame of development pages: one style, one way to ask the API, one way to show a mail.

A page is public and holds no data: what it shows it asks of the API, with a token that whoever opens it must have.
"""

from __future__ import annotations

import base64
import hashlib
import html

from threadline.kernel.public_route import PublicAnswer

_STYLE = """
:root { color-scheme: light dark; --line: light-dark(#d9dde3, #363a41); --soft: light-dark(#f4f6f8, #1e2126);
  --paper: light-dark(#fff, #15171a); --ink: light-dark(#1a1d21, #e8eaed); --quiet: light-dark(#5d6670, #a3abb5);
  --accent: light-dark(#00734f, #34c08d); --chosen: light-dark(#e3f3ed, #16342a) }
* { box-sizing: border-box }
body { margin: 0; font: 15px/1.5 system-ui, sans-serif; background: var(--paper); color: var(--ink) }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .4rem 1.2rem; padding: .6rem 1.2rem;
  border-bottom: 1px solid var(--line) }
header h1 { font-size: 1.05rem; margin: 0 } header nav { display: flex; gap: 1rem; margin-right: auto }
a { color: var(--accent) } header nav a { text-decoration: none } header nav a[aria-current] { font-weight: 600 }
button, input, select { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--line);
  border-radius: 6px; padding: .3rem .7rem }
button { cursor: pointer } button:hover { border-color: var(--accent) }
button[aria-pressed=true] { background: var(--chosen); border-color: var(--accent) }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px }
input { width: 100% } .quiet { color: var(--quiet) } [hidden] { display: none !important }
.panes { display: grid; grid-template-columns: minmax(15rem, 20rem) minmax(0, 1fr); height: calc(100vh - 3.4rem) }
.panes > * { overflow: auto; min-width: 0 } .panes > :first-child { border-right: 1px solid var(--line) }
.bar { display: flex; gap: .5rem; align-items: center; padding: .7rem 1rem; position: sticky; top: 0;
  background: var(--paper); border-bottom: 1px solid var(--line); z-index: 1 }
.rows { list-style: none; margin: 0; padding: 0 }
.rows button { display: grid; grid-template-columns: 1fr auto; gap: 0 .6rem; width: 100%; text-align: left; border: 0;
  border-bottom: 1px solid var(--line); border-radius: 0; padding: .6rem 1rem; background: none }
.rows button:hover { background: var(--soft) } .rows button[aria-current=true] { background: var(--chosen) }
.rows span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
.rows .subject { grid-column: 1 / -1; font-weight: 600 } .rows .quiet { font-size: .85rem }
.mail { padding: 1rem 1.4rem 3rem } .mail h2 { margin: 0; font-size: 1.3rem; overflow-wrap: anywhere }
.mail .tabs { display: flex; flex-wrap: wrap; gap: .4rem; margin: 1rem 0 }
.mail iframe { display: block; border: 1px solid var(--line); border-radius: 8px; background: #fff; width: 100%;
  height: 4rem; color-scheme: light }
.mail .devices { display: flex; flex-wrap: wrap; gap: 1.4rem; align-items: flex-start; overflow-x: auto }
.mail figure { margin: 0; flex: none } .mail figcaption { color: var(--quiet); font-size: .85rem; margin-bottom: .3rem }
.mail pre { background: var(--soft); border-radius: 8px; padding: 1rem; margin: 0; white-space: pre-wrap;
  overflow-wrap: anywhere; font: 13px/1.5 ui-monospace, monospace }
.mail dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem 1rem; margin: 0 }
.mail dt { color: var(--quiet) } .mail dd { margin: 0; overflow-wrap: anywhere }
.empty { padding: 4rem 1rem; text-align: center; color: var(--quiet) }
dialog { border: 1px solid var(--line); border-radius: 10px; background: var(--paper); color: inherit;
  max-width: 28rem }
.error { color: light-dark(#b3261e, #ff8a80); padding: .6rem 1rem }
@media (max-width: 48rem) { .panes { grid-template-columns: 1fr; height: auto }
  .panes > :first-child { border-right: 0; max-height: 45vh; border-bottom: 1px solid var(--line) } }
"""

_SCRIPT = """
'use strict'
const given = new URLSearchParams(location.hash.slice(1)).get('token')
if (given) {
  sessionStorage.setItem('token', given)
  history.replaceState(null, '', location.pathname + location.search)
}
const make = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}
async function api(path, body) {
  const token = sessionStorage.getItem('token') ?? ''
  const headers = { authorization: `Bearer ${token}` }
  if (body !== undefined) headers['content-type'] = 'application/json'
  const method = body === undefined ? 'GET' : 'POST'
  const answer = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) })
  if (answer.status === 401 || answer.status === 403) {
    const login = document.getElementById('login')
    if (!login.open) login.showModal()
    throw new Error('an API token is needed')
  }
  const found = await answer.json()
  if (!answer.ok) throw new Error(found.detail ?? found.title ?? answer.statusText)
  return found
}
document.getElementById('login').addEventListener('submit', (event) => {
  sessionStorage.setItem('token', new FormData(event.target).get('token').trim())
  location.reload()
})
let shownPart = sessionStorage.getItem('part') ?? 'html'
function framed(mail, width) {
  const frame = make('iframe', { title: `The mail at ${width} pixels`, referrerPolicy: 'no-referrer' })
  frame.sandbox = 'allow-same-origin allow-popups allow-popups-to-escape-sandbox'
  frame.style.width = `${width}px`
  frame.srcdoc = `<base target="_blank">${mail.html}`
  frame.addEventListener('load', () => {
    frame.style.height = `${Math.max(frame.contentDocument.documentElement.scrollHeight, 200)}px`
  })
  return make('figure', {}, make('figcaption', { textContent: width < 500 ? 'Phone' : 'Desk' }), frame)
}
const pre = (text) => make('pre', { textContent: text })
const PARTS = {
  html: ['HTML', (mail) => mail.html && make('div', { className: 'devices' }, framed(mail, 375), framed(mail, 660))],
  text: ['Text', (mail) => mail.text && pre(mail.text)],
  headers: ['Headers', (mail) => mail.headers && make('dl', {}, ...mail.headers.flatMap(({ name, value }) =>
    [make('dt', { textContent: name }), make('dd', { textContent: value })]))],
  links: ['Links', (mail) => mail.links?.length && make('dl', {}, ...mail.links.flatMap((link, number) =>
    [make('dt', { textContent: number + 1 }), make('dd', {}, /^https?:/i.test(link)
      ? make('a', { href: link, textContent: link, target: '_blank', rel: 'noreferrer' }) : link)]))],
  raw: ['Raw', (mail) => mail.raw && pre(mail.raw)],
}
function showMail(place, mail) {
  const tabs = make('div', { className: 'tabs', role: 'group' })
  const body = make('div')
  const choose = (part) => {
    for (const tab of tabs.children) tab.setAttribute('aria-pressed', tab.dataset.part === part)
    body.replaceChildren(PARTS[part][1](mail) || make('p', { className: 'quiet', textContent: 'There is none.' }))
  }
  for (const [part, [title]] of Object.entries(PARTS)) {
    const tab = make('button', { type: 'button', textContent: title, onclick: () => {
      shownPart = part
      sessionStorage.setItem('part', part)
      choose(part)
    } })
    tab.dataset.part = part
    tabs.append(tab)
  }
  const at = mail.at?.slice(0, 19).replace('T', ' ')
  const people = [mail.sender && `from ${mail.sender}`, mail.to && `to ${mail.to}`, at && `${at} UTC`]
  place.replaceChildren(make('h2', { textContent: mail.subject || '(no subject)' }),
    make('div', { className: 'quiet', textContent: people.filter(Boolean).join(' · ') }), tabs, body)
  choose(shownPart)
}
function failed(error) {
  const place = document.getElementById('error')
  place.textContent = error ? error.message : ''
  place.hidden = !error
}
"""
"""`api` asks with the token, `showMail` shows a mail of {subject, sender, to, at, html, text, headers, links, raw}, of
which each may be missing, `make` makes an element, `failed` shows an error."""

_LOGIN = """
<dialog id="login"><form method="dialog"><p><label for="token">An API token with the scope read:</label></p>
<p><input id="token" name="token" type="password" autocomplete="off" required></p>
<p class="quiet">It stays in this tab. <code>threadline keys create --kind token --name me --scopes read,write</code>
makes one; a link that ends in <code>#token=…</code> brings it along.</p><p><button>Go on</button></p></form></dialog>
<p id="error" class="error" role="alert" hidden></p>
"""
PAGES = (("/dev/inbox", "Inbox"), ("/dev/mail", "Templates"))
"""The development pages, in the order of their links."""


def frame(path: str, title: str, body: str, script: str) -> PublicAnswer:
    """A development page: `body` below its head, and what `script` does with the functions of the frame."""
    links = "".join(
        f'<a href="{other}"{" aria-current=page" if other == path else ""}>{name}</a>' for other, name in PAGES
    )
    whole = _SCRIPT + script
    page = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>'
        f"<body><header><h1>Threadline</h1><nav>{links}</nav></header>{_LOGIN}{body}<script>{whole}</script></body></html>"
    )
    digest = base64.b64encode(hashlib.sha256(whole.encode()).digest()).decode()
    # A mail is shown in a frame without a source of its own, which has these rules as well: its images and fonts may
    # come from anywhere, a script runs nowhere but here.
    rules = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline' https:; img-src * data:; "
        "font-src https: data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return PublicAnswer(page.encode(), headers={"content-security-policy": rules})
