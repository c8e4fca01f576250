"""Bayesian estimates from priors, and tests of the priors against the reports."""
