"""The simulation with two groups that own the same partitions; the long form: `--groups`."""

import pytest

from ldpstream.agents.partition.loading import reads_less, reads_more
from tests.soak import seeds
from tests.stream.simulation.groups import FormatWorker, GroupWorker, TwoFormats, TwoGroups
from tests.stream.simulation.patched import with_partition
from tests.stream.simulation.run import Run, explain, run
from tests.stream.simulation.worker import Watched


class UnprovedTold(Watched):
    """A mutant: that a load has not yet proved idleness is written at once, as a change."""

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


def test_owners_that_displace_each_other_forever_are_noticed():
    make = with_partition(UnprovedTold, TwoGroups, worker=GroupWorker)
    assert run(2, make=TwoGroups).violated is None
    assert run(2, make=make).violated == "(4) not all windows became final"


class ToldAtOnce(Watched):
    """A mutant: a new owner that reads more writes so at once."""

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


def test_groups_that_take_idle_partitions_from_each_other_are_noticed():
    assert mutated(0, ToldAtOnce).violated == "(4) not all windows became final"


def test_a_group_that_does_not_hold_the_state_back_is_noticed():
    assert run(58, make=TwoFormats).world.held_back
    assert not mutated(58, ToldNever).world.held_back


def mutated(seed: int, partition: type[Watched]) -> Run:
    return run(seed, make=with_partition(partition, TwoFormats, worker=FormatWorker))
