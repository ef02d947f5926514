"""The pages of consent as HTML: one column, without scripts and images, in light and dark."""

from __future__ import annotations

from collections.abc import Collection
from html import escape

from threadline.capabilities.reach.consent.addresses import masked
from threadline.capabilities.reach.consent.definition import Consent, Topic
from threadline.kernel.public_route import PublicAnswer

_STYLE = """
:root{color-scheme:light dark;--paper:#f4f2ee;--card:#fff;--ink:#1f2328;--soft:#5b6068;--line:#dcd8d0;--accent:#1a5fb4;
--on-accent:#fff;--good:#e3f3e6;--good-ink:#14532d}
@media(prefers-color-scheme:dark){:root{--paper:#16181c;--card:#1f2227;--ink:#eceae6;--soft:#a9adb5;--line:#3a3e46;
--accent:#8ab8ff;--on-accent:#0c1a2e;--good:#173524;--good-ink:#bdeaca}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:flex;justify-content:center;align-items:flex-start;background:var(--paper);
color:var(--ink);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;padding:clamp(1rem,8vh,5rem) 1rem}
main{width:100%;max-width:34rem;background:var(--card);border:1px solid var(--line);border-radius:1rem;
padding:clamp(1.25rem,5vw,2.5rem);overflow-wrap:anywhere}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .75rem;text-wrap:balance}
p{margin:0 0 1.25rem;color:var(--soft)}
p[role=status]{background:var(--good);color:var(--good-ink);padding:.75rem 1rem;border-radius:.6rem}
fieldset{border:0;margin:0 0 1.5rem;padding:0}
legend{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
label{display:flex;gap:.85rem;padding:1rem 0;border-top:1px solid var(--line);cursor:pointer}
label:last-of-type{border-bottom:1px solid var(--line)}
input{flex:none;width:1.25rem;height:1.25rem;margin:.15rem 0 0;accent-color:var(--accent)}
label b{display:block;font-weight:600}
small{font-size:.9rem;color:var(--soft)}
button{font:inherit;font-weight:600;border-radius:.6rem;padding:.7rem 1.25rem;min-height:2.75rem;cursor:pointer;
border:1px solid var(--accent);background:var(--accent);color:var(--on-accent)}
button.quiet{background:transparent;color:var(--accent)}
p.other{margin:1.5rem 0 0}
form.quiet{border-top:1px solid var(--line);margin-top:1.75rem;padding-top:1.75rem}
main>p:last-child{margin-bottom:0}
form.quiet small{display:block;margin-top:.6rem}
a{color:var(--accent)}
:focus-visible{outline:3px solid var(--accent);outline-offset:3px;border-radius:.3rem}
@media(max-width:30rem){button{width:100%}}
"""


def answer(consent: Consent, title: str, body: str) -> PublicAnswer:
    """A page of this title around a body that is HTML."""
    page = (
        f'<!doctype html><html lang="{escape(consent.text("language"))}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="robots" content="noindex">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><main><h1>{escape(title)}</h1>{body}</main></body></html>"
    )
    return PublicAnswer(page.encode())


def unknown(consent: Consent) -> PublicAnswer:
    """What whoever has no link of ours sees: nothing about anybody."""
    return answer(consent, consent.text("title"), f"<p>{escape(consent.text('unknown'))}</p>")


def sentence(consent: Consent, name: str, address: str, topic: str = "") -> str:
    """A text of the pages with what it names filled in, as HTML. The address is masked: a link is soon passed on."""
    values = {"address": masked(address), "topic": title_of(consent, topic), "brand": consent.brand}
    text = consent.text(name)
    for key, value in values.items():
        text = text.replace(f"{{{key}}}", value)
    return escape(text)


def title_of(consent: Consent, topic: str) -> str:
    """What pages call a topic, also one that is not declared any more."""
    declared = consent.topics.get(topic)
    return declared.shown if declared is not None else Topic(name=topic).shown


def question(consent: Consent, title: str, text: str, button: str, preferences: str = "") -> PublicAnswer:
    """A page with one question, already HTML, and one button that posts."""
    form = f'<form method="post"><button name="confirm" value="1">{escape(consent.text(button))}</button></form>'
    return answer(consent, consent.text(title), f"<p>{text}</p>{form}{_way_to(consent, preferences)}")


def done(consent: Consent, title: str, name: str, preferences: str) -> PublicAnswer:
    """A page that says what was done."""
    status = f'<p role="status">{escape(consent.text(name))}</p>'
    return answer(consent, consent.text(title), status + _way_to(consent, preferences))


def _way_to(consent: Consent, preferences: str) -> str:
    """The link to the other topics, where there are any."""
    if not consent.topics or not preferences:
        return ""
    return f'<p class="other"><a href="{escape(preferences)}">{escape(consent.text("other"))}</a></p>'


def preferences(
    consent: Consent, address: str, ticked: Collection[str], *, saved: bool, suppressed: bool
) -> PublicAnswer:
    """The topics with a box for each, and the button that unsubscribes from everything."""
    text = consent.text
    body = f"<p>{sentence(consent, 'intro', address)}</p>"
    if saved:
        body = f'<p role="status">{escape(text("saved"))}</p>{body}'
    if suppressed:
        body += f"<p>{escape(text('suppressed'))}</p>"
    boxes = "".join(_box(topic, name in ticked) for name, topic in consent.topics.items())
    if boxes:
        body += (
            f'<form method="post"><fieldset><legend>{escape(text("title"))}</legend>{boxes}</fieldset>'
            f'<button name="save" value="1">{escape(text("save"))}</button></form>'
        )
    body += (
        f'<form method="post" class="quiet"><button class="quiet" name="all" value="1">{escape(text("all"))}</button>'
        f"<small>{escape(text('all_hint'))}</small></form>"
    )
    return answer(consent, text("title"), body)


def _box(topic: Topic, checked: bool) -> str:
    hint = f"<small>{escape(topic.description)}</small>" if topic.description else ""
    return (
        f'<label><input type="checkbox" name="topic" value="{topic.name}"{" checked" if checked else ""}>'
        f"<span><b>{escape(topic.shown)}</b>{hint}</span></label>"
    )
