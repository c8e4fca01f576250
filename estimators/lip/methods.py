"""The methods of credible intervals, apart from `mmse` so that naming them does not load scipy."""

from typing import Literal

CredibleMethod = Literal["normal", "bernstein", "anytime"]

Suspicion = Literal["too low", "too high", "too far from 1/2", "too near 1/2", "wrong in a level"]
"""How priors that the reports contradict are wrong, in the words of documents."""
