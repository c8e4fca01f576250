"""Bayesian estimates from priors, and whether the reports agree with the priors."""
