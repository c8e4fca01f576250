"""How a credible interval is made: apart from `mmse`, so that whoever names it needs no scipy."""

from typing import Literal

CredibleMethod = Literal["normal", "bernstein", "anytime"]
