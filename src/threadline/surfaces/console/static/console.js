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
    return answer.ok
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
    if (!target.matches('[data-renew], .drawn #panel :not([name^=_new_])')) return
    clearTimeout(timer)
    clearTimeout(renewing)
    // Whoever types the name of a choice goes through others. A list that came anew meanwhile would begin to search from the next letter on.
    renewing = setTimeout(() => renew(form).then(ask), target.matches('select') ? 250 : 0)
  })
  form.addEventListener('submit', (event) => {
    if (event.submitter?.hasAttribute('formtarget')) return // it goes into a frame
    event.preventDefault()
    clearTimeout(timer)
    clearTimeout(renewing)
    if (event.submitter?.closest('#panel') || event.submitter?.name === '_do') renew(form, event.submitter).then(ask)
    else event.submitter?.hasAttribute('formaction') ? act(form, event.submitter) : ask()
  })
}

// --- editors: the panel comes anew after a button in it, or a choice that others depend on ---

const called = (summary) => summary.firstChild?.textContent.trim() // what follows says what it is now

async function renew(form, button) {
  const panel = $('#panel', form)
  const body = new URLSearchParams(new FormData(form))
  if (button) body.append(button.name, button.value)
  const around = (put) => {
    const [typed, at] = [[...new FormData(form)], document.activeElement] // as they are when the answer has come
    const within = panel.contains(at)
    const [text, { scrollTop, scrollLeft }] = [$('[data-text]', form)?.value, $('.canvas', form) ?? {}]
    const open = button ? [] : [...panel.querySelectorAll('details[open] > summary')].map(called)
    put()
    for (const each of panel.querySelectorAll('summary')) each.parentElement.open ||= open.includes(called(each))
    $('.canvas', form)?.scrollTo(scrollLeft, scrollTop)
    if (button) $('.canvas .box[aria-pressed=true]', form)?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
    remember(form, text)
    keepTyped(form, body, typed)
    const next = (button && $('[data-focus]', panel)?.dataset.focus) || (within && at.id)
    if (next) document.getElementById(next)?.focus()
    else if (within) $(`button[value="${CSS.escape(at.value)}"]`, panel)?.focus()
  }
  await loadPart(panel, `${location.pathname}?part=panel`, { body, around })
}

// --- a drawing: what was before each change, and a step that is dragged to a point ---

const pasts = new WeakMap() // form -> the texts before, and those that were taken back

function remember(form, text) {
  const now = $('[data-text]', form)?.value
  const past = pasts.get(form) ?? { before: [], after: [] }
  pasts.set(form, past)
  if (text !== undefined && now !== undefined && text !== now && !past.busy) {
    past.before.push(text)
    past.after = []
  }
  for (const [name, texts] of [['undo', past.before], ['redo', past.after]]) {
    const button = $(`[data-${name}]`, form)
    if (button) button.disabled = !texts.length
  }
}

async function turnBack(form, from, to) {
  const past = pasts.get(form)
  const field = $('[data-text]', form)
  if (!past || past.busy || !field || !past[from].length) return
  past.busy = true
  past[to].push(field.value)
  field.value = past[from].pop()
  for (const each of form.querySelectorAll('[name=_of]')) each.value = '-' // of nothing: its fields are those before
  await renew(form)
  past.busy = false
  remember(form)
  form.dispatchEvent(new Event('input'))
}

document.addEventListener('dragstart', ({ target, dataTransfer }) => {
  if (target.matches?.('.box[draggable]')) dataTransfer.setData('text/x-step', target.value.slice(3))
})
document.addEventListener('dragover', (event) => {
  const point = event.target.closest?.('.point')
  for (const each of $$('.point.over')) each.classList.toggle('over', each === point)
  if (point) { event.preventDefault(); point.classList.add('over') }
})
document.addEventListener('drop', (event) => {
  const [point, step] = [event.target.closest?.('.point'), event.dataTransfer.getData('text/x-step')]
  if (!point || !step) return
  event.preventDefault()
  point.form.elements._moving.value = step
  point.value = `put:${point.dataset.point}`
  point.form.requestSubmit(point)
})

// --- mails: frames that are sent what is written, values put in where one writes, pictures ---

function showMail(root) {
  for (const frame of $$('iframe[data-post]', root)) {
    const form = Object.assign(document.createElement('form'), { method: 'post', action: frame.dataset.post, target: frame.name })
    for (const [name, value] of new FormData($('#editor'))) form.append(Object.assign(document.createElement('input'), { type: 'hidden', name, value }))
    document.body.append(form)
    form.submit()
    form.remove()
  }
}

let written // the field of the panel that somebody has written in last
document.addEventListener('focusin', ({ target }) => {
  if (target.matches('#panel textarea, #panel input:not([type=hidden], [type=checkbox], [type=file])')) written = target
})

function insertValue({ insert, fallback }) {
  const field = written?.isConnected ? written : document.getElementById(written?.id)
  const instead = document.getElementById(fallback)?.value
  if (!field) return toast('Choose a field of the mail first')
  const text = `{{ ${insert}${instead ? ` | default(${JSON.stringify(instead)})` : ''} }}`
  field.setRangeText(text, field.selectionStart ?? field.value.length, field.selectionEnd ?? field.value.length, 'end')
  field.focus()
  fieldChanged(field)
}

function fieldChanged(field) {
  for (const name of ['input', 'change']) field.dispatchEvent(new Event(name, { bubbles: true }))
}

function fill(id, value) {
  const field = document.getElementById(id)
  if (!field) return
  field.value = value
  fieldChanged(field)
}

async function upload(input) {
  const [form, body] = [input.form, new FormData()]
  body.append('_csrf', form.elements._csrf.value)
  body.append('file', input.files[0])
  const problem = $('.problem-text', form)
  problem.textContent = ''
  try {
    const answer = await fetch('/do/mail_add_picture', { method: 'POST', body, headers: { accept: 'application/json' } })
    const said = await answer.json()
    if (!answer.ok) problem.textContent = [said.problem ?? said.detail, said.hint].filter(Boolean).join(' — ')
    else fill(input.dataset.upload, said.result.source)
  } catch {
    problem.textContent = 'The server cannot be reached. Try again.'
  }
}
document.addEventListener('change', ({ target }) => { if (target.matches('[data-upload]') && target.files.length) upload(target) })

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

// A problem of a form is marked at its field, which its button leads to.
function markFields(root) {
  if (root.id !== 'checked') return
  for (const field of $$('#panel [data-marked]')) { delete field.dataset.marked; field.removeAttribute('aria-invalid') }
  for (const { dataset } of $$('.bad [data-field]', root)) {
    const field = fieldOf(dataset.field)
    if (field) { field.dataset.marked = ''; field.setAttribute('aria-invalid', 'true') }
  }
}

function fieldOf(id) {
  const there = document.getElementById(id)
  return there?.matches('input, select, textarea') ? there : there?.querySelector('input:not([type=hidden]), select, textarea, button')
}

function goToField(id) {
  const field = fieldOf(id)
  for (let box = field?.closest('details:not([open])'); box; box = box.parentElement.closest('details:not([open])')) box.open = true
  field?.focus()
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
      target.textContent = said.result?.[form.dataset.show] ?? JSON.stringify(said.result, null, 2)
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
  let timer, answered, entered
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
  const enter = () => $$('li a', list)[Math.max(0, marked())]?.click()
  const ask = async () => {
    const text = input.value
    if (!await loadPart(list, `/find?part=list&q=${encodeURIComponent(text)}`)) return
    mark(0)
    answered = text
    if (entered && made.open && text === input.value) enter()
  }
  input.addEventListener('input', () => { entered = false; clearTimeout(timer); timer = setTimeout(ask, 120) })
  input.addEventListener('keydown', (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') { event.preventDefault(); mark(marked() + (event.key === 'ArrowDown' ? 1 : -1)) }
    if (event.key === 'Enter') {
      event.preventDefault()
      // Before the answer to what was typed the list is that of another text: what it has first is not what is meant.
      if (answered === input.value) return enter()
      entered = true
      clearTimeout(timer)
      ask()
    }
  })
  ask()
}

// --- everything that is on a page ---

function begin(root) {
  for (const each of $$('[data-load]', root)) waiting.observe(each)
  for (const each of $$('form[data-part]', root)) partForm(each)
  for (const each of $$('form.editor')) numberLines(each)
  showMail(root)
  markFields(root === document ? $('#checked') ?? root : root)
  for (const each of $$('[data-live]', root)) live(each)
  for (const each of $$('[data-again]', root)) again(each)
  for (const each of $$('.tabs > [aria-current]', root)) {
    each.parentElement.scrollLeft = each.offsetLeft - each.parentElement.offsetLeft - 40
  }
  // A path that is wider than its box begins where people begin.
  for (const each of $$('.flowchart .start', root)) {
    const box = each.closest('.chart-box, .canvas'), start = each.getBoundingClientRect(), seen = box.getBoundingClientRect()
    if (!box.scrollLeft) box.scrollLeft += start.left + start.width / 2 - seen.left - seen.width / 2
  }
  for (const each of $$('[data-counted]', root)) {
    const box = $(`[data-count="${CSS.escape(each.dataset.counted)}"]`)
    if (box) box.textContent = each.dataset.people
  }
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
  if (button?.matches('[data-undo]')) turnBack(button.form, 'before', 'after')
  if (button?.matches('[data-redo]')) turnBack(button.form, 'after', 'before')
  if (button?.matches('[data-goto]')) goTo(document.getElementById(button.dataset.goto), button.closest('[data-line]').dataset)
  if (button?.matches('[data-field]')) goToField(button.dataset.field)
  if (button?.matches('[data-insert]')) insertValue(button.dataset)
  if (button?.matches('[data-fill]')) fill(button.dataset.fill, button.dataset.value)
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
  const drawn = $('form.drawn')
  if (drawn && !typing && (event.metaKey || event.ctrlKey) && event.key.toLowerCase() === 'z') {
    event.preventDefault()
    turnBack(drawn, ...(event.shiftKey ? ['after', 'before'] : ['before', 'after']))
  }
  if (event.key === '/' && !typing && !$('dialog[open]')) { event.preventDefault(); ($('.filters input') ?? palette()) ?.focus?.() }
})
addEventListener('popstate', () => location.reload())
const done = sessionStorage.getItem('done')
if (done) { sessionStorage.removeItem('done'); toast(done) }
begin(document)
