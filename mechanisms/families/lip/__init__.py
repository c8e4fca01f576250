"""Localized information privacy: priors and levels."""
