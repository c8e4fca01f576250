"""Ordered domains under a distance: geometric noise and noisy bits."""
