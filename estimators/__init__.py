"""Estimates with bounds from exact, mergeable statistics."""
