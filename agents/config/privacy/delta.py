"""With which probability a bound on what published documents tell may fail, unless told."""

from typing import Final

DELTA: Final = 1e-8
