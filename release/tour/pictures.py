"""The pictures of the docs: which screen each one is of, and what is done there first."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from playwright.sync_api import Page

WAIT_MILLISECONDS = 240_000
PAUSE_MILLISECONDS = 450
"""What is typed is sent after a pause; a little more than that."""
WIDE = (1_440, 900)
JOURNEY = """trigger: {segment: newcomers}
exit_on: {event: purchase_completed}
steps:
  - wait: 2d
  - send: offer
  - wait: 5d
  - send: letter
"""


class Picture(NamedTuple):
    """One screen."""

    name: str
    """Its file below `docs`, without the ending."""
    path: str
    prepare: Callable[[Page], None] | None = None
    """What is done on the page before the picture is taken."""
    dark: bool = False
    size: tuple[int, int] = WIDE


def settle(page: Page) -> None:
    """Wait until the parts of the page that can be seen are there."""
    page.wait_for_timeout(PAUSE_MILLISECONDS)
    page.wait_for_selector("[aria-busy=true]", state="detached", timeout=WAIT_MILLISECONDS)


def _click(page: Page, selector: str) -> None:
    page.locator(selector).first.click()
    page.wait_for_load_state()
    settle(page)


def _past(page: Page) -> None:
    page.locator("input[type=range]").evaluate(_SLIDE, 0.4)


_SLIDE = """(slider, share) => {
  slider.value = Number(slider.min) + share * (slider.max - slider.min);
  for (const type of ["input", "change"]) slider.dispatchEvent(new Event(type, {bubbles: true}));
}"""


def _mail_as_sent(page: Page) -> None:
    _click(page, "text=As it was sent")
    page.locator("#mail").scroll_into_view_if_needed()


def _what_if(page: Page) -> None:
    _click(page, "text=Large from 80 dollars on?")


def _condition(page: Page, number: int, field: str, comparison: str, value: str) -> None:
    """Fill in a row of a form of conditions."""
    row = f"_when.{number}"
    page.fill(f"[id='{row}.field']", field)
    page.keyboard.press("Tab")
    settle(page)
    page.select_option(f"[id='{row}.is']", label=comparison)
    settle(page)
    entry = page.locator(f"[id='{row}.value']")
    if entry.evaluate("entry => entry.tagName") == "SELECT":
        entry.select_option(value)
    else:
        entry.fill(value)
    settle(page)


def _segment(page: Page) -> None:
    page.fill("[name=name]", "club_without_order")
    page.click("summary:has(~ * [name=_description])")
    page.fill("[name=_description]", "Members of the club who have not ordered yet.")
    _condition(page, 0, "traits.plan", "is", "club")
    page.click("text=Add a condition")
    page.wait_for_selector("[id='_when.1.field']")
    _condition(page, 1, "features.has_purchased", "is not, or is missing", "true")


def _journey(page: Page) -> None:
    page.fill("[name=name]", "first_order")
    _click(page, "text=YAML")
    page.fill("textarea", JOURNEY)
    settle(page)
    _click(page, "text=Drawing")
    page.wait_for_selector("#preview table", timeout=WAIT_MILLISECONDS)
    settle(page)


def _mail(page: Page) -> None:
    page.fill("[name=name]", "first_record")
    page.fill("[id='_f.subject']", "Your first record, {{ person.traits.first_name | default('friend') }}")
    page.fill("[name=_person]", "user_id:m003")
    settle(page)
    _click(page, ".block:has-text('Footer')")
    page.click("summary:has-text('Add a block above')")
    _click(page, "button[value='new:blocks.2:button']")
    page.fill("[id='_f.button.text']", "Choose one")
    page.fill("[id='_f.button.link']", "https://music.example/records")
    settle(page)
    _click(page, ".block:has-text('Some words')")
    page.fill("[id='_f.text']", "Members of the club get five dollars off the **first record** that they order.")
    page.keyboard.press("Tab")
    settle(page)
    page.frame_locator("iframe[name=phone]").locator("text=Choose one").first.wait_for()
    page.evaluate("scrollTo(0, 0)")


def _gallery(page: Page) -> None:
    page.wait_for_selector("h2:has-text('What it would have done')", timeout=WAIT_MILLISECONDS)


def _broadcast(page: Page) -> None:
    page.fill("[name=id]", "winter-letter")
    page.select_option("[name=template]", "letter")
    settle(page)
    page.select_option("[name='audience.segment']", "newcomers")
    settle(page)
    _click(page, "button:has-text('Test two variants')")
    page.fill("[name='arms.0.subject']", "Six records for long evenings")
    page.fill("[name=_holdout]", "10")
    settle(page)


def _draft(page: Page) -> None:
    _broadcast(page)
    _click(page, "button:has-text('Save as a draft')")
    page.wait_for_url("**/broadcasts/winter-letter")
    settle(page)


def _fact(page: Page) -> None:
    page.fill("input[name=type]:visible", "preference")
    page.fill("input[name=key]:visible", "language")
    page.fill("input[name=value]:visible", "Italian")
    _click(page, "text=Remember")
    page.goto(f"{page.url.partition('?')[0]}?tab=memory")
    _click(page, "a:has-text('Correct')")
    page.evaluate("scrollTo(0, 0)")


def _privacy(page: Page) -> None:
    _click(page, "button:has-text('Unsubscribe')")
    if page.locator("dialog[open]").count():
        page.locator("dialog button[value=yes]").click()
        settle(page)
    _click(page, "text=Count it")


MEMBER = "/people/user_id:m003"
CUSTOMER = "/people/user_id:m004"
FUNNEL = "/analytics/funnel?steps=signed_up&steps=record_played&steps=purchase_completed"
TOUR_SIZE = (1_200, 1_000)
PICTURES = (
    Picture("tour/home", "/", size=TOUR_SIZE),
    Picture("tour/person", MEMBER, size=TOUR_SIZE),
    Picture("tour/features", f"{MEMBER}?tab=features", _past, size=TOUR_SIZE),
    Picture("tour/mail", f"{MEMBER}?tab=reach", _mail_as_sent, size=TOUR_SIZE),
    Picture("tour/journey", "/journeys/welcome", size=TOUR_SIZE),
    Picture("tour/broadcast", "/broadcasts/autumn-letter", size=TOUR_SIZE),
    Picture("tour/what-if", "/what-if", _what_if, size=TOUR_SIZE),
    Picture("tour/segment", "/segments/new?name=newcomers", size=TOUR_SIZE),
    Picture("tour/funnel", FUNNEL, size=TOUR_SIZE),
    Picture("tour/health", "/health", dark=True, size=TOUR_SIZE),
    Picture("guides/pictures/segment", "/segments/new", _segment, size=(1_440, 760)),
    Picture("guides/pictures/template", "/templates/offer?person=user_id:m003"),
    Picture("guides/pictures/mail", "/templates/new", _mail, size=(1_440, 1_250)),
    Picture("guides/pictures/journey", "/journeys/new", _journey, size=(1_440, 1_100)),
    Picture("guides/pictures/gallery", "/gallery/welcome", _gallery, size=(1_440, 1_340)),
    Picture("guides/pictures/journey-runs", "/journeys/welcome"),
    Picture("guides/pictures/broadcast", "/broadcasts/new", _broadcast, size=(1_440, 1_800)),
    Picture("guides/pictures/draft", "/broadcasts/new", _draft),
    Picture("guides/pictures/results", "/broadcasts/autumn-letter"),
    Picture("guides/pictures/timeline", CUSTOMER),
    Picture("guides/pictures/mail-as-sent", f"{CUSTOMER}?tab=reach", _mail_as_sent),
    Picture("guides/pictures/why-not", f"{CUSTOMER}?tab=reach&why_not=all", size=(1_440, 560)),
    Picture("guides/pictures/merge", f"{CUSTOMER}?tab=identity&other=cdnow-0010", size=(1_440, 760)),
    Picture("guides/pictures/fact", f"{CUSTOMER}?tab=memory", _fact, size=(1_440, 640)),
    Picture("guides/pictures/privacy", f"{CUSTOMER}?tab=privacy", _privacy, size=(1_440, 800)),
    Picture("guides/pictures/health", "/health", size=(1_440, 760)),
)
"""In the order in which they are taken: what one leaves behind, such as a draft, is there for those after it."""
