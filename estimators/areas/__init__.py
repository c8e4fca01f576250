"""Shares at the resolution that the reports carry: areas that differ from what surrounds them."""
