"""What may be chosen of a plan: apart from what computes it, which needs scipy."""

from typing import Final, Literal

Objective = Literal["published", "ranges", "values"]
"""What mechanisms are sorted by: the published ranges and quantiles, all ranges, all values."""

SEARCHED_VALUES: Final = 24
"""Up to this many values the search is a matter of seconds: it runs unasked."""
SEARCH_SECONDS: Final = 10.0
LIMIT_SECONDS: Final = 60.0
"""A comparison takes so long at most, unless one says otherwise."""
