"""One partition without I/O or a clock: its records, what they decide, and its state machine.

Whatever reads several replicas may raise a `BehindError`; of a span that is empty, or begins or
ends within a pane, a `ValueError`.
"""
