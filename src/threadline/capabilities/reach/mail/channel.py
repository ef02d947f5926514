"""Mail as a channel: what its messages have of their own beside what is done for every channel."""

from __future__ import annotations

from collections.abc import Sequence

from threadline.capabilities.reach.mail.definition import Sender
from threadline.capabilities.reach.mail.message import address_of, message_of
from threadline.capabilities.reach.mail.order import Order, links_of, order_of, with_context
from threadline.capabilities.reach.mail.projection import ENTRIES, WARM_UP, warm_up_partition
from threadline.capabilities.reach.mail.templates import Rendered, TemplateFailed, Templates, render
from threadline.capabilities.reach.messages.channel import Made
from threadline.capabilities.reach.messages.context import Cause
from threadline.capabilities.reach.messages.ledger import Entries
from threadline.capabilities.reach.messages.limits import Limits
from threadline.kernel.limits import PAGE_ITEMS_MAX
from threadline.kernel.outbox import PendingEffect
from threadline.kernel.person_view import PersonView
from threadline.kernel.ports import IndexRows, Ports
from threadline.kernel.preparation import Postponed
from threadline.kernel.store import beyond
from threadline.kernel.time import DAY

_DAYS_COUNTED = 100


class MailChannel:
    """See `Channel`; mails of these templates."""

    entries: Entries = ENTRIES

    def __init__(self, templates: Templates) -> None:
        self._templates = templates
        self._counts = WarmUpCounts()
        self.limits: Limits = templates.mail.limits

    def is_address(self, text: str) -> bool:
        """See `Channel`."""
        return address_of(text) is not None

    def order(self, view: PersonView, pending: PendingEffect) -> Order:
        """See `Channel`."""
        data = pending.effect.data
        return order_of(self._templates, self._templates.named(str(data.get("template", ""))), view, pending.id, data)

    def paced(self, ports: Ports, order: Order, at: int) -> Postponed | None:
        """A new domain sends so many mails a day."""
        warm = self._counts.until(ports.rows, order.workspace, order.sender, at)
        return None if warm is None else Postponed(until=warm, why="warm_up")

    def complete(self, ports: Ports, order: Order, view: PersonView, event: str) -> Order:
        """See `Channel`; with the links of this recipient."""
        return with_context(order, view, Cause(ports, order.workspace, event), links_of(ports, view, order))

    def fill(self, ports: Ports, orders: Sequence[Order]) -> list[Rendered | TemplateFailed]:
        """See `Channel`."""
        return render(ports.confined, [(order.compiled, order.context) for order in orders])

    def make(self, ports: Ports, order: Order, filled: Rendered | TemplateFailed) -> Made:
        """See `Channel`; the bytes of the mail, tracked and signed."""
        message = message_of(ports, order, filled)
        data = {
            "message": message.octets,
            "from": message.envelope,
            "to": message.recipient.mailbox,
            "smtputf8": not (message.octets.isascii() and message.envelope.isascii()),
            "sender": order.sender.id,
            "domain": order.sender.id_domain,
            "workspace": order.workspace,
        }
        return Made(message.recipient.mailbox.casefold(), data, message.record)


class WarmUpCounts:
    """Mails of new domains by day. Rows are read once: a day only grows, and each count is replaced as a whole."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, str]] = {}

    def until(self, rows: IndexRows, workspace: str, sender: Sender, at: int) -> int | None:
        """The next day, if the domain of a sender has sent what it may today; None: it may send."""
        most = sender.warm_up.most(at) if sender.warm_up is not None else None
        if most is None:
            return None
        day = at // DAY
        partition = warm_up_partition(workspace, sender.id_domain, day)
        count, last = self._counts.get(partition, (0, ""))
        while page := rows.read(WARM_UP, partition, last, None, PAGE_ITEMS_MAX):
            count, last = count + len(page), beyond(page[-1].sort)
        if len(self._counts) >= _DAYS_COUNTED:
            self._counts.clear()
        self._counts[partition] = (count, last)
        return (day + 1) * DAY if count >= most else None
