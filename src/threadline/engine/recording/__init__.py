"""The write path: events are validated, assigned to people, worked on a person at a time, and committed.

A *call* of the recorder is made in *attempts*, until all of its events are settled. An attempt collects one *change*
for each person, which becomes one batch of the commit; *reactions* are what policies add to it. Read in this order:

    validation     an event and its identifiers, without a store
    recorder       a call: what is new, whom it is about, group after group, the commit; what is tried again
    duplicates     what the log has already
    working_set    the people of a call
    identity       the person of an event, joins and splits; merging: those that an operator asks for
    attempt        one attempt, its changes, and what an event of a type sets off
    reactions      policies, and what they wish for
    rejected_log   what could not be recorded, until somebody decides
"""
