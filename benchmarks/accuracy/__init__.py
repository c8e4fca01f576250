"""Errors, coverage and widths: measured on simulated devices, and predicted."""
