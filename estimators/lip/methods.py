"""How a credible interval is made: apart from `mmse`, so that whoever names it needs no scipy."""

from typing import Literal

CredibleMethod = Literal["normal", "bernstein", "anytime"]

Suspicion = Literal["too low", "too high", "too far from 1/2", "too near 1/2", "wrong in a level"]
"""What is wrong with priors that the reports contradict, in the words of documents."""
