"""The simulation with two groups that own the same partitions; the long form: `--groups`."""

import pytest

from tests.soak import seeds
from tests.stream.simulation.groups import GroupWorker, TwoGroups
from tests.stream.simulation.patched import with_partition
from tests.stream.simulation.run import explain, run
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
