"""Predictions for plans: the errors and costs of mechanisms before any report."""
