"""The matrix mechanism: rows of a strategy with discrete Laplace noise."""
