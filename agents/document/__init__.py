"""Estimate documents: models, how they are built from exact totals, and a client for them."""
