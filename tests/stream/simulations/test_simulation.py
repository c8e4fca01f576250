"""The short form of the simulation: `python -m tests.stream.simulate` is the long one."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import pytest

from ldpstream.agents.state.windows import NEVER
from tests.soak import CHECK, seeds
from tests.stream.simulation.broken_gathered import Partitions
from tests.stream.simulation.curious import CuriousWorld, isolated
from tests.stream.simulation.curious_attributes import AttributeWorld
from tests.stream.simulation.curious_blocks import BlockWorld
from tests.stream.simulation.groups import TwoGroups
from tests.stream.simulation.intake import Harsh, IntakeWorld
from tests.stream.simulation.run import explain, run
from tests.stream.simulation.tokens import TokenWorld
from tests.stream.simulation.uneven import CuriousUnevenWorld, UnevenWorld
from tests.stream.simulation.world import World

ran = lru_cache(maxsize=64)(run)


def outcomes(worlds: Sequence[Any]) -> Counter[str]:
    return sum((counter for world in worlds for counter in world.checks.outcomes), Counter())


def everything(worlds: Sequence[Any]) -> bool:
    needed = {"counted", "late", "future", "range", "fingerprint", "undecodable", "lost"}
    return (
        outcomes(worlds).keys() >= needed
        and max(len(world.checks.published) for world in worlds) > 5
        and max(head.seq for world in worlds for head in world.official) > 20
        and sum(world.times.seen for world in worlds) > 100
    )


def gathered(worlds: Sequence[Any]) -> bool:
    heads = [world.official for world in worlds[:6]]
    return all(first.gathered > NEVER for first, *_ in heads) and any(
        other.gathered > NEVER for _, *others in heads for other in others
    )


def every_token(worlds: Sequence[Any]) -> bool:
    found, others = outcomes(worlds), {"late", "partition", "range", "fingerprint", "lost"}
    enough = found["counted"] > 150 and found["repeated"] > 150 and found["crowded"] > 20
    return enough and found.keys() >= others


def learnt(worlds: Sequence[Any]) -> bool:
    told = [world.checks.told for world in worlds]
    return sum(map(len, told)) > 20 and max(len(isolated(one)) for one in told) > 5


def learnt_of_blocks(worlds: Sequence[Any]) -> bool:
    return max(len(isolated(world.checks.told_blocks)) for world in worlds) > 5


def idle(worlds: Sequence[Any]) -> bool:
    return sum(world.idle for world in worlds) > 200


def displaced(worlds: Sequence[Any]) -> bool:
    return sum(world.lost for world in worlds) > 50


@pytest.mark.soak
@pytest.mark.parametrize(
    ("make", "few", "soak", "begin", "reached"),
    [
        (World, 40, 4_000, 0, everything),
        (World, 20, 2_000, 20_000, None),
        (Partitions, 12, 2_000, 0, gathered),
        (TwoGroups, 15, 2_000, 0, displaced),
        (IntakeWorld, 20, 2_000, 0, idle),
        (Harsh, 20, 2_000, 0, idle),
        (TokenWorld, 40, 1_000, 0, every_token),
        (UnevenWorld, 12, 2_000, 0, None),
        (CuriousUnevenWorld, 12, 2_000, 0, None),
        (CuriousWorld, 10, 2_000, 0, learnt),
        (CuriousWorld, 10, 2_000, 10_000, None),
        (AttributeWorld, 4, 500, 0, None),
        (BlockWorld, 20, 2_000, 0, learnt_of_blocks),
    ],
)
def test_all_invariants_hold(
    make: type[World], few: int, soak: int, begin: int, reached: Callable[[Any], bool] | None
):
    """What a world has `reached` in these runs shows that there was something to hold."""
    worlds = []
    for seed in seeds(few, soak=soak, first=begin):
        done = ran(seed, make=make)
        assert done.violated is None, explain(seed, make=make)
        worlds.append(done.world)
    assert CHECK or reached is None or reached(worlds)


def test_records_read_late_and_dated_early_become_final_too():
    assert run(9_304_094, make=Harsh).violated is None


def test_sums_and_differences_isolate_what_is_in_the_same_answers():
    assert sorted(isolated({0b1111, 0b0011, 0b0110})) == [0b0001, 0b0010, 0b0100, 0b1000]
    assert isolated({0}) == []
