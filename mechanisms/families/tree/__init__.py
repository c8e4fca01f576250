"""Hierarchical levels for ranges: a report is about one level of a tree over the values."""
