"""Short names for array types."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Indices = NDArray[np.int64]
Bools = NDArray[np.bool_]
