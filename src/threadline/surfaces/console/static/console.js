// The console's one script. Without it every page and form still works; with it pages load in parts and stay live.
'use strict'

const $ = (selector, root = document) => root.querySelector(selector)
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)]

// --- parts: pieces of a page that load after it, or again without the rest of it ---

async function loadPart(target, address, { push = false, body, around = (put) => put() } = {}) {
  const url = new URL(address, location.href)
  const shown = new URL(url)
  shown.searchParams.delete('part')
  target.setAttribute('aria-busy', 'true')
  const number = (target.asked = (target.asked ?? 0) + 1)
  try {
    const answer = await fetch(url, { method: body ? 'POST' : 'GET', body, headers: { accept: 'text/html' } })
    if (answer.redirected && new URL(answer.url).pathname === '/sign-in') return location.reload()
    const markup = await answer.text()
    if (number !== target.asked) return // a later question has been asked meanwhile
    around(() => { target.innerHTML = markup })
    begin(target)
    if (push) history.pushState({}, '', shown)
  } catch {
    if (number === target.asked) target.innerHTML = '<p class="note bad">The server cannot be reached. Try again.</p>'
  } finally {
    target.removeAttribute('aria-busy')
  }
}

const waiting = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    if (!isIntersecting) continue
    waiting.unobserve(target)
    loadPart(target, target.dataset.load)
  }
}, { rootMargin: '200px' })

// A form with data-part asks again while it is filled in, and shows the answer in the element of that id.
function partForm(form) {
  const target = document.getElementById(form.dataset.part)
  const ask = () => {
    const query = new URLSearchParams(new FormData(form))
    if (form.method === 'post') return loadPart(target, `${location.pathname}?part=${form.dataset.part}`, { body: query }).then(follow)
    for (const [name, value] of [...query]) if (!value) query.delete(name)
    query.set('part', form.dataset.part)
    loadPart(target, `${form.getAttribute('action') || location.pathname}?${query}`, { push: form.dataset.keep !== 'no' })
  }
  // What takes longer is a part within that answer, asked for once it is there.
  const follow = () => {
    const slower = document.getElementById(form.dataset.then)
    if (slower) loadPart(slower, `${location.pathname}?part=${slower.id}`, { body: new URLSearchParams(new FormData(form)) })
  }
  if (form.dataset.then) follow()
  let timer, renewing
  form.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(ask, 180) })
  form.addEventListener('change', ({ target }) => {
    if (!target.matches('[data-renew]')) return
    clearTimeout(timer)
    clearTimeout(renewing)
    // Whoever types the name of a choice goes through others. A list that came anew meanwhile would begin to search from the next letter on.
    renewing = setTimeout(() => renew(form).then(ask), target.matches('select') ? 250 : 0)
  })
  form.addEventListener('submit', (event) => {
    event.preventDefault()
    clearTimeout(timer)
    clearTimeout(renewing)
    if (event.submitter?.closest('#panel')) renew(form, event.submitter).then(ask)
    else event.submitter?.hasAttribute('formaction') ? act(form, event.submitter) : ask()
  })
}

// --- editors: the panel comes anew after a button in it, or a choice that others depend on ---

async function renew(form, button) {
  const panel = $('#panel', form)
  const body = new URLSearchParams(new FormData(form))
  if (button) body.append(button.name, button.value)
  const around = (put) => {
    const [typed, at] = [[...new FormData(form)], document.activeElement] // as they are when the answer has come
    const within = panel.contains(at)
    put()
    keepTyped(form, body, typed)
    const next = (button && $('[data-focus]', panel)?.dataset.focus) || (within && at.id)
    if (next) document.getElementById(next)?.focus()
    else if (within) $(`button[value="${CSS.escape(at.value)}"]`, panel)?.focus()
  }
  await loadPart(panel, `${location.pathname}?part=panel`, { body, around })
}

// What was typed while an answer was on its way is put into it.
function keepTyped(form, sent, typed) {
  for (const [name, value] of typed) {
    const field = form.elements[name]
    if (sent.has(name) && sent.get(name) !== value && field?.value === sent.get(name)) {
      field.value = value
      field.dispatchEvent(new Event('input', { bubbles: true })) // what the answer says is wrong with it may be over
    }
  }
}

// --- editors: the numbers of the lines, and beside each what stands against it ---

function numberLines(editor) {
  const [text, gutter] = [$('.lines textarea', editor), $('.gutter', editor)]
  if (!text) return
  const marks = new Map($$(`#${editor.dataset.part} [data-line]`).reverse().map(({ dataset }) => [dataset.line, dataset.mark]))
  const lines = text.value.split('\n').length
  text.rows = Math.max(lines + 1, 14)
  gutter.replaceChildren(...Array.from({ length: lines }, (_, number) => {
    const mark = marks.get(String(number + 1)) ?? ''
    return Object.assign(document.createElement('li'), { textContent: number + 1, className: mark })
  }))
  text.toggleAttribute('aria-invalid', [...marks.values()].includes('bad'))
}

function goTo(text, { line, column }) {
  const before = text.value.split('\n').slice(0, line - 1)
  const at = before.reduce((length, each) => length + each.length + 1, 0) + Math.max(column - 1, 0)
  text.focus()
  text.setSelectionRange(at, at)
}

// --- live lists ---

function live(list) {
  let source
  const limit = Number(list.dataset.most || 200)
  const state = document.getElementById(`${list.id}-state`)
  const show = (text) => { if (state) state.textContent = text }
  const open = () => {
    const url = new URL(list.dataset.live, location.href)
    url.searchParams.set('live', '1')
    source = new EventSource(url)
    source.onopen = () => show('live')
    source.onerror = () => show('connecting …')
    source.addEventListener('rate', ({ data }) => {
      const rate = document.getElementById(`${list.id}-rate`)
      if (rate) rate.textContent = Number(data).toLocaleString('en', { maximumFractionDigits: data < 10 ? 1 : 0 })
    })
    source.onmessage = ({ data }) => {
      const box = document.createElement('template')
      box.innerHTML = data
      const fresh = [...box.content.children].reverse()
      for (const each of fresh) each.classList.add('new')
      list.prepend(...fresh)
      begin(list)
      while (list.children.length > limit) list.lastElementChild.remove()
      const empty = document.getElementById(`${list.id}-empty`)
      if (empty) empty.hidden = true
    }
  }
  const close = () => { source?.close(); source = undefined; show('paused') }
  const button = document.getElementById(`${list.id}-pause`)
  button?.addEventListener('click', () => {
    source ? close() : open()
    button.textContent = source ? 'Pause' : 'Go on'
    button.setAttribute('aria-pressed', String(!source))
  })
  addEventListener('pagehide', () => source?.close())
  open()
}

// A part that asks again every few seconds until its answer says `data-ended` somewhere, such as the progress of a job.
function again(target) {
  const step = async () => {
    if (!target.isConnected) return
    if (!document.hidden) await loadPart(target, target.dataset.again)
    if ($('[data-ended]', target)) return
    setTimeout(step, 1000 * (target.dataset.seconds || 2))
  }
  setTimeout(step, 1000 * (target.dataset.seconds || 2))
}

// --- actions: forms that change something ---

const dialog = (markup) => {
  const made = document.createElement('dialog')
  made.append(markup)
  document.body.append(made)
  made.addEventListener('close', () => made.remove())
  made.showModal()
  return made
}

function confirmed(text, button) {
  return new Promise((resolve) => {
    const box = document.createElement('form')
    box.method = 'dialog'
    const say = document.createElement('p')
    say.textContent = text
    const row = document.createElement('p')
    row.className = 'row'
    const yes = Object.assign(document.createElement('button'), { value: 'yes', textContent: button, className: 'danger' })
    const no = Object.assign(document.createElement('button'), { value: 'no', textContent: 'Cancel' })
    row.append(yes, no)
    box.append(say, document.createElement('hr'), row)
    const made = dialog(box)
    no.focus()
    made.addEventListener('close', () => resolve(made.returnValue === 'yes'))
  })
}

function toast(text) {
  const made = Object.assign(document.createElement('div'), { className: 'toast', textContent: text })
  made.setAttribute('role', 'status')
  document.body.append(made)
  setTimeout(() => made.remove(), 4000)
}

async function act(form, submitter) {
  if (form.dataset.confirm && !(await confirmed(form.dataset.confirm, submitter?.textContent.trim() || 'Go on'))) return
  const problem = $('.problem-text', form) ?? form.appendChild(Object.assign(document.createElement('p'), { className: 'problem-text' }))
  problem.setAttribute('role', 'alert')
  problem.textContent = ''
  for (const field of $$('[aria-invalid]', form)) field.removeAttribute('aria-invalid')
  const buttons = $$('button', form)
  for (const each of buttons) each.disabled = true
  try {
    const body = new URLSearchParams(new FormData(form))
    if (submitter?.name) body.append(submitter.name, submitter.value)
    const address = submitter?.hasAttribute('formaction') ? submitter.formAction : form.action
    const answer = await fetch(address, { method: 'POST', body, headers: { accept: 'application/json' } })
    const said = await answer.json()
    if (!answer.ok) {
      problem.textContent = [said.problem ?? said.detail, said.hint].filter(Boolean).join(' — ')
      const field = said.param && form.elements[said.param]
      if (field?.setAttribute) { field.setAttribute('aria-invalid', 'true'); field.focus() }
      return
    }
    if (form.dataset.show) { // the result is shown here, and nothing is left
      const target = document.getElementById(form.dataset.show)
      target.textContent = JSON.stringify(said.result, null, 2)
      return
    }
    if (form.dataset.done) sessionStorage.setItem('done', form.dataset.done)
    location.assign(said.go)
    if (new URL(said.go, location.href).pathname === location.pathname) location.reload()
  } catch {
    problem.textContent = 'The server cannot be reached. Nothing is known of what became of this; load the page again before you repeat it.'
  } finally {
    for (const each of buttons) each.disabled = false
  }
}

// --- the palette ---

function palette() {
  const box = $('#palette-template').content.cloneNode(true)
  const made = dialog(box)
  made.className = 'palette'
  made.setAttribute('aria-label', 'Find anything')
  const input = $('input', made)
  const list = $('ul', made)
  let timer
  const mark = (place) => {
    for (const each of $$('li', list)) each.setAttribute('role', 'presentation')
    const entries = $$('li a', list)
    if (!entries.length) return input.removeAttribute('aria-activedescendant')
    const next = (place + entries.length) % entries.length
    entries.forEach((each, number) => {
      each.id = `found-${number}`
      each.tabIndex = -1
      each.setAttribute('role', 'option')
      each.setAttribute('aria-selected', String(number === next))
    })
    input.setAttribute('aria-activedescendant', `found-${next}`)
    entries[next].scrollIntoView({ block: 'nearest' })
  }
  const marked = () => $$('li a', list).findIndex((each) => each.getAttribute('aria-selected') === 'true')
  const ask = async () => {
    await loadPart(list, `/find?part=list&q=${encodeURIComponent(input.value)}`)
    mark(0)
  }
  input.addEventListener('input', () => { clearTimeout(timer); timer = setTimeout(ask, 120) })
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') { event.preventDefault(); mark(marked() + (event.key === 'ArrowDown' ? 1 : -1)) }
    if (event.key === 'Enter') { event.preventDefault(); $$('li a', list)[Math.max(0, marked())]?.click() }
  })
  ask()
}

// --- everything that is on a page ---

function begin(root) {
  for (const each of $$('[data-load]', root)) waiting.observe(each)
  for (const each of $$('form[data-part]', root)) partForm(each)
  for (const each of $$('form.editor')) numberLines(each)
  for (const each of $$('[data-live]', root)) live(each)
  for (const each of $$('[data-again]', root)) again(each)
  const now = Date.now()
  for (const each of $$('time[datetime]', root)) {
    const instant = new Date(each.dateTime)
    each.title = instant.toLocaleString() + (Math.abs(now - instant) < 6e4 ? '' : ` (here) · ${each.dateTime}`)
  }
}

document.addEventListener('submit', (event) => {
  if (event.target.matches('form[data-action]')) { event.preventDefault(); act(event.target, event.submitter) }
})
document.addEventListener('input', ({ target }) => {
  const row = target.closest('.condition, .action')
  if (row) { $('.problem-text', row)?.remove(); target.removeAttribute('aria-invalid') }
})
document.addEventListener('input', ({ target }) => { if (target.matches('.editor .lines textarea')) numberLines(target.form) })
document.addEventListener('click', (event) => {
  const link = event.target.closest('a[data-part]')
  if (link && !event.metaKey && !event.ctrlKey) {
    event.preventDefault()
    const url = new URL(link.href)
    url.searchParams.set('part', link.dataset.part)
    loadPart(document.getElementById(link.dataset.part), url, { push: true })
  }
  const button = event.target.closest('button')
  if (button?.matches('[data-palette]')) palette()
  if (button?.matches('[data-menu]')) button.setAttribute('aria-expanded', String($('.side').classList.toggle('open')))
  if (button?.matches('[data-copy]')) navigator.clipboard?.writeText(document.getElementById(button.dataset.copy).textContent).then(() => toast('Copied'))
  if (button?.matches('[data-goto]')) goTo(document.getElementById(button.dataset.goto), button.closest('[data-line]').dataset)
  if (button?.matches('[data-open]')) document.getElementById(button.dataset.open).showModal()
  if (button?.matches('[data-close]')) button.closest('dialog').close()
  if (button?.matches('[data-theme-next]')) {
    const order = { auto: 'light', light: 'dark', dark: 'auto' }
    const next = order[document.documentElement.dataset.theme]
    document.documentElement.dataset.theme = next
    document.cookie = `threadline_theme=${next};path=/;max-age=31536000;samesite=lax`
    $('[data-theme-name]').textContent = next
  }
})
document.addEventListener('keydown', (event) => {
  const typing = event.target.matches('input, textarea, select, [contenteditable]')
  if ((event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'k') { event.preventDefault(); if (!$('dialog[open]')) palette() }
  if (event.key === '/' && !typing && !$('dialog[open]')) { event.preventDefault(); ($('.filters input') ?? palette()) ?.focus?.() }
})
addEventListener('popstate', () => location.reload())
const done = sessionStorage.getItem('done')
if (done) { sessionStorage.removeItem('done'); toast(done) }
begin(document)
