"""The choices of a plan, apart from its computation so that naming them does not load scipy."""

from typing import Final, Literal

Objective = Literal["published", "ranges", "values", "mmse"]
"""The queries by which mechanisms are sorted: published ranges and quantiles, ranges, or values.

With `mmse` they are sorted by the error of the Bayesian estimate of all values with the prior.
"""

SEARCHED_VALUES: Final = 24
"""Up to this many values the search takes seconds and runs by default."""
SEARCH_SECONDS: Final = 10.0
LIMIT_SECONDS: Final = 60.0
"""The default time limit of a comparison."""
