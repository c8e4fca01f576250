"""Lists of the largest shares are those of a full sort, ties and undefined numbers too."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.document.estimates import largest

NUMBERS = st.sampled_from([-1.0, -0.0, 0.0, 0.25, 0.5, float("nan")])


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30), st.integers(0, 35))
def test_a_list_is_the_beginning_of_all_sorted(pairs: list[tuple[float, float]], number: int):
    first, then = np.array(pairs).T
    assert largest(first, then, number).tolist() == np.lexsort((-then, -first))[:number].tolist()
