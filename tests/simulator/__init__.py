"""A deterministic simulator: engines, a store with faults, senders and clocks in one process, from one seed."""
