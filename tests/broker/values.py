"""Lines of values with their times, as `ldpstream send` takes them."""

import numpy as np

from tests.lab import START_MS
from tests.ledger import WINDOW_MS


def value_lines(n: int) -> str:
    times = (START_MS + np.arange(n) * 37 % (2 * WINDOW_MS)).tolist()
    return "".join(f"{time_ms},{i * i % 12}\n" for i, time_ms in enumerate(times))
