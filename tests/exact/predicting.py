"""Variances of single values' estimates before any report."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from ldpstream.estimators.planning.predictions import predicted_set_variances
from ldpstream.mechanisms.base.arrays import Floats
from ldpstream.mechanisms.interface.mechanism import Mechanism


def predicted_value_variances(
    mechanism: Mechanism, values: Iterable[int], **options: Any
) -> Floats:
    """Those of the sets of one value each."""
    sets = [np.array([value]) for value in values]
    return predicted_set_variances(mechanism, sets, **options)
