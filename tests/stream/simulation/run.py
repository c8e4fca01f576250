"""Runs of the simulation, and the shortest schedule of one that fails."""

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass

from ldpstream.agents.state.cell_encoding import (
    decode_chunk,
    decode_final,
    decode_late,
    decode_totals,
)
from ldpstream.agents.state.disclosure_groups import decode_part, decode_release
from ldpstream.agents.state.encoding import decode_head
from ldpstream.agents.state.records import HEAD, Head, RecordError
from ldpstream.agents.state.tokens import decode_tokens
from tests.stream.simulation.evaluation import read_key
from tests.stream.simulation.setting import ViolationError
from tests.stream.simulation.world import World

_READ: dict[str, Callable[[bytes], str]] = {
    "count": lambda value: str(decode_chunk(value, 1).tolist()),
    "n": lambda value: str(decode_totals(value)),
    "final": lambda value: str(decode_final(value)),
    "late": lambda value: str(decode_late(value)),
    "token": lambda value: str(decode_tokens(value).tolist()),
    "part": lambda value: str(decode_part(value)),
    "release": lambda value: str(decode_release(value)),
    "reserve": bytes.hex,
    "open": lambda value: str(decode_chunk(value, 1).tolist()),
}


@dataclass
class Run:
    """A finished run, and the violation that ended it, or None."""

    world: World
    violated: str | None


def plan(seed: int) -> list[int]:
    rng = random.Random(-seed - 1)
    return [rng.getrandbits(32) for _ in range(rng.choice([50, 300, 600]))]


def is_kafka(seed: int) -> bool:
    """Return whether a run is on Kafka; a quarter is on the development broker."""
    return seed % 4 != 0


def run(seed: int, schedule: list[int] | None = None, *, make: type[World] = World) -> Run:
    world = make(seed, kafka=is_kafka(seed))
    try:
        for number in plan(seed) if schedule is None else schedule:
            world.step(number)
        world.quiesce()
    except ViolationError as violation:
        return Run(world, str(violation))
    except RecordError as error:
        return Run(world, f"(3) refused by the reader: {error}")
    return Run(world, None)


def shrink(seed: int, *, make: type[World] = World) -> list[int]:
    """Return the shortest schedule that still violates the same invariant, by leaving out steps."""
    schedule, size = plan(seed), 64
    label = _label(run(seed, make=make))
    while size:
        for i in range(len(schedule) - 1, -1, -size):
            shorter = schedule[: max(0, i - size + 1)] + schedule[i + 1 :]
            # A state that a broken rule has damaged may make the code fail before a check.
            with suppress(LookupError, ValueError):
                if _label(run(seed, shorter, make=make)) == label:
                    schedule = shorter
        size //= 2
    return schedule


def _label(done: Run) -> str:
    return (done.violated or "")[:3]


def story(world: World) -> list[str]:
    """Return what happened in a run, one line for each step."""
    return ["  " + _tell(world, step) for step in world.trace]


def _tell(world: World, step: tuple[object, ...]) -> str:
    if step[0] != "land":
        return " ".join(map(str, step))
    _, p, data, value = step
    key = read_key(world.prefix, data)
    name = f"{key.name.kind}({key.name.number}, {key.name.chunk})"
    what = f"land {p} {name} epoch={key.epoch} seq={key.seq} "
    if value is None:
        return what + "deletion"
    if key.name != HEAD:
        return what + _READ[key.name.kind](value)
    head, empty = asdict(decode_head(key, value)), asdict(Head())
    return what + " ".join(f"{k}={v}" for k, v in head.items() if v != empty[k])


def explain(seed: int, *, make: type[World] = World) -> str:
    """Return the violation of a failing seed, and its shortest schedule."""
    schedule = shrink(seed, make=make)
    short = run(seed, schedule, make=make)
    lines = [f"seed {seed}, {len(schedule)} steps: {short.violated}; shortest schedule:"]
    lines += [f"  {short.world.setting}", *story(short.world)]
    return "\n".join(lines)
