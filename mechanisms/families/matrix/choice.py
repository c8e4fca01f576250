"""Which of several strategies is best for a workload."""

from collections.abc import Sequence
from typing import Final

from ldpstream.mechanisms.families.matrix.decoder import MatrixDecoder
from ldpstream.mechanisms.families.matrix.workload import WORKLOADS

_TIE: Final = 1e-6


def least_error(decoders: Sequence[MatrixDecoder], workload: str, *, size: int) -> int:
    """Return the place of the decoder with the least predicted error for a workload.

    `size` is the number of values. Of equally good ones, up to 1e-6, the first: floats decide
    nothing that rounding could turn. The chosen strategy is part of the fingerprint.
    """
    gram = WORKLOADS[workload](size)
    best, least = 0, decoders[0].total_error(gram)
    for place, decoder in enumerate(decoders):
        error = decoder.total_error(gram)
        if error < least * (1.0 - _TIE):
            best, least = place, error
    return best
