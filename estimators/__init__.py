"""Estimates with bounds from exact, mergeable statistics.

What takes a statistic and its number of reports raises a `ValueError` where the one does not count
the other, what takes options where one is invalid, and what takes indices where one is outside the
domain.
"""
