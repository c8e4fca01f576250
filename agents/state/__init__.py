"""The stored state of a partition: its records, their evaluation, and the counts of open panes."""
