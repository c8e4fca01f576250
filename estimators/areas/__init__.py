"""Estimates at the resolution that the reports allow: areas that differ from their surroundings."""
