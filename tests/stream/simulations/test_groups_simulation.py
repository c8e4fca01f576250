"""The simulation with two groups that own the same partitions; its long form: `--groups`."""

import pytest

from ldpstream.agents.partition.upgrade import reads_less, reads_more
from tests.soak import seeds
from tests.stream.simulation.groups import FormatWorker, GroupWorker, TwoFormats, TwoGroups
from tests.stream.simulation.run import Run, explain, run
from tests.stream.simulation.worker import Watched


class UnprovedTold(Watched):
    """A mutant: what a load has not proved idle yet is told at once, as if it were news."""

    def clock(self, **moment: object) -> None:
        before = self.work.idle
        super().clock(**moment)
        self._changed |= before and not self.work.idle


@pytest.mark.soak
def test_two_groups_count_everything_once_and_come_to_an_end():
    lost = 0
    for seed in seeds(15, soak=2_000):
        done = run(seed, make=TwoGroups)
        assert done.violated is None, explain(seed, make=TwoGroups)
        lost += done.world.lost
    assert lost > 50


def test_owners_that_displace_each_other_for_ever_are_noticed():
    worker = type("Worker", (GroupWorker,), {"partition_class": UnprovedTold})
    make = type("World", (TwoGroups,), {"worker_class": worker})
    assert run(2, make=TwoGroups).violated is None
    assert run(2, make=make).violated == "(4) not all windows became final"


class ToldAtOnce(Watched):
    """A mutant: that a new owner reads more is told at once."""

    def prepare(self) -> None:
        super().prepare()
        self._changed |= reads_more(self.base, self.work)


class ToldNever(Watched):
    """A mutant: an owner that reads less takes nothing back."""

    def prepare(self) -> None:
        super().prepare()
        self._changed &= not reads_less(self.base, self.work)


@pytest.mark.soak
def test_groups_that_read_different_formats_come_to_an_end_and_then_the_state_moves_on():
    for seed in seeds(15, soak=2_000):
        done = run(seed, make=TwoFormats)
        assert done.violated is None, explain(seed, make=TwoFormats)
        assert done.world.held_back


def test_groups_that_take_what_is_idle_from_each_other_are_noticed():
    assert mutated(0, ToldAtOnce).violated == "(4) not all windows became final"


def test_a_group_that_does_not_hold_the_state_back_is_noticed():
    assert run(58, make=TwoFormats).world.held_back
    assert not mutated(58, ToldNever).world.held_back


def mutated(seed: int, partition: type[Watched]) -> Run:
    worker = type("Worker", (FormatWorker,), {"partition_class": partition})
    return run(seed, make=type("World", (TwoFormats,), {"worker_class": worker}))
