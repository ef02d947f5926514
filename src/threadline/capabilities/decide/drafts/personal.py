"""What the store has of a person about proposals: nothing."""

from __future__ import annotations

from threadline.capabilities.decide.drafts.repository import PROPOSAL
from threadline.kernel.personal import StoreTable

PROPOSAL_TABLE = StoreTable(PROPOSAL, "nobody", why="definitions that somebody proposes, for everybody")
