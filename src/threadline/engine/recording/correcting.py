"""Records the correction of a rejected entry: the event, and the decision about the entry, in one commit."""

from __future__ import annotations

from threadline.engine.recording import rejected_log as rejected
from threadline.engine.recording.recorder import FENCED, Recorder
from threadline.engine.recording.validation import RecordRequest
from threadline.kernel.event import Event, Receipt, event_id
from threadline.kernel.rejected import RejectedEntry, StoredEntry


def resubmit(
    recorder: Recorder, stored: StoredEntry, event: Event, expected: int | None = None
) -> tuple[Receipt, RejectedEntry]:
    """The receipt of the event, and the entry: settled if the event is in the log, as it was if it is not.

    Both are one commit under the version at which the entry was read, so that of several who decide about it at once
    only one is heard, and the others record nothing. Raises `Conflict` for those, and for an entry that is settled.
    """
    id = event_id(event.workspace, event.source, event.key)
    decided, put = rejected.settled(stored, "resubmitted", id)
    receipt = recorder.record([RecordRequest(event, expected=expected, writes=(put,))])[0]
    if receipt.code == FENCED:
        raise rejected.overtaken(stored.entry)
    if receipt.status == "accepted":
        return receipt, decided
    if receipt.status == "duplicate":
        # The log has the event already, and nothing was committed: only the entry is left to be settled.
        return receipt, rejected.settle(recorder.store, stored, "resubmitted", receipt.id)
    return receipt, stored.entry
