"""Attributes that are computed once: in threads, in subclasses, through pickling."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Barrier

from ldpstream.mechanisms.base.lazy import locked_cached_property

COMPUTED: list[int] = []


@dataclass(frozen=True)
class Slow:
    number: int

    @locked_cached_property
    def result(self) -> list[int]:
        COMPUTED.append(self.number)
        time.sleep(0.02)
        return [self.number]


@dataclass(frozen=True)
class Other(Slow):
    @locked_cached_property
    def result(self) -> list[int]:
        return [self.number, 0]


def test_threads_that_ask_at_once_wait_for_one_result():
    COMPUTED.clear()
    slow, together = Slow(1), Barrier(8)

    def ask(_: int) -> list[int]:
        together.wait()
        return slow.result

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(ask, range(8)))
    assert COMPUTED == [1]
    assert all(one is found[0] for one in found)


def test_two_instances_are_not_computed_at_the_same_time():
    together, spans = Barrier(2), []

    class Timed(Slow):
        @locked_cached_property
        def result(self) -> list[int]:
            began = time.monotonic()
            time.sleep(0.02)
            spans.append((began, time.monotonic()))
            return []

    def ask(number: int) -> list[int]:
        together.wait()
        return Timed(number).result

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(ask, range(2)))
    (_, first_end), (second_start, _) = sorted(spans)
    assert first_end <= second_start


def test_a_result_belongs_to_its_instance_and_its_class():
    slow, other = Slow(1), Other(2)
    assert other.result == [2, 0]
    assert other.result is other.result
    assert slow.result == [1]
    assert replace(slow, number=3).result == [3]
    assert slow == Slow(1)
    assert pickle.loads(pickle.dumps(other)).result == [2, 0]
