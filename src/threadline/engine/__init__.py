"""The moving parts, written once: they are handed a catalogue and name no capability.

    recording      the write path: validated, assigned, worked on a person at a time, committed
    folding        a person: states from events, how they are stored, the states at an instant
    reading        a person at an instant, the history of their identity, ranks
    delivery       timers and effects that are due, retried, given up on
    simulation     history replayed in another way
    maintenance    whole stores: copied, rebuilt, checked, dumped

`engine.py` puts them together; `context.py` is what an operation is handed.
"""
