"""One partition without I/O or a clock: its records, what they decide, and its state machine."""
