"""Subset selection inside disclosed blocks."""
