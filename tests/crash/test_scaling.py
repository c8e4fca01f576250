"""What benchmarks.resilience.scaling measures while workers come and go."""

from benchmarks.resilience.progress import total_seconds, waits


def test_a_wait_begins_with_a_message_and_ends_with_the_head_that_counts_it() -> None:
    arrived = {0: [10.0, 11.0, 12.0], 1: [10.5]}
    heads = {0: [(1, 10.25), (2, 15.0), (3, 15.5)], 1: [(1, 20.5)]}
    # The second head comes 4 s after its message; the third message waits since the second head.
    assert waits(heads, arrived) == [(10.0, 10.25), (11.0, 15.0), (15.0, 15.5), (10.5, 20.5)]
    assert total_seconds(waits(heads, arrived)) == 10.25


def test_spans_that_overlap_count_once() -> None:
    assert total_seconds([(3.0, 4.0), (1.0, 2.5), (2.0, 2.25), (7.0, 8.0)]) == 3.5
