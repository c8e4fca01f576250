"""Predicted total errors of linear counting: docs/theory.md section 4.

The total error of a workload W for n respondents is the sum of the variances of its estimated
totals, `n sum_j v_j (B^T B)[j, j]` with the noise's variances v_j. It does not depend on the data.
"""

import numpy as np

from benchmarks.accuracy.scales import alphas_of, gram_of
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.families.matrix.matrix import Matrix


def predicted_total_error(
    mechanism: Matrix, n: int, workload: str | Floats, *, continuous: bool = False
) -> float:
    """Return the expected sum of squared errors of a workload's totals over n respondents.

    Exact for the decoder that `estimate_linear` uses, as all values add the same noise (with
    disclosed groups: the mean over all values). Divided by n^2 it is the error of the shares.
    `continuous` gives the formula of [ML] III, `2 n sum_j s_j^2 (B^T B)[j, j]`, of the continuous
    Laplace distribution with the same scales, for the same B: always larger.

    Raises:
        ValueError: as `gram_of`.
    """
    weights = mechanism.decoder.row_weights(gram_of(workload, mechanism.size))
    if not continuous:
        return n * float((weights * mechanism.rows.variances).sum())
    return n * float((weights * 2.0 / np.log(alphas_of(mechanism.rows)) ** 2).sum())
