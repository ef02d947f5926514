"""The moving parts, written once: an event recorded, a person read, what is due carried out.

No file imports one that imports it, so they can be read in a line, from the ground up:

    a person       packing, catalogue, states, meanwhile, person, draft
    their events   history, refold, instants, known
    an event       names, screen
    its wishes     waiting, wishes, cascade
    recording it   people, group, identity, placing, turns, record
    reading        finding, past, ask
    what is due    outcomes, parking, lanes; then engine, outbox, lane_work, dispatch

The rest stands beside these: `joining`, `correcting`, `indexing`, `rebuilding`, `moving`, and `whatif` on `sandbox`.
"""
