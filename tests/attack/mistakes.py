"""Mistakes at the command line that are found out slowly, or one at a time."""

import resource
from dataclasses import replace

from tests.attack.stand import Attack, Outcome, Stand

_NOBODY = "http://127.0.0.1:1"
_TIMES = 10
"""The most CPU time, in that of `--help`."""


async def nobody_answers(stand: Stand) -> Outcome:
    """Ask a worker that does not run, again and again, as somebody who waits for it does."""
    helped = min(_cpu_seconds(stand, "--help") for _ in range(3))
    asked = min(_cpu_seconds(stand, "query", _NOBODY, "trips") for _ in range(3))
    return Outcome(asked < _TIMES * helped, f"{asked:.2f} s of CPU, --help {helped:.2f}")


def _cpu_seconds(stand: Stand, *arguments: str) -> float:
    # A forked command would not load anything itself.
    stand = replace(stand, forked=False)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    stand.run(*arguments)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def many_bad_lines(stand: Stand) -> Outcome:
    """Give a file of which many lines are bad, to find out how many there are."""
    collection = 'mechanism = "block-hadamard"\nepsilon = 1.0\ndomain = { size = 12 }'
    file = stand.configure({"trips": collection})
    lines = "".join("x\n" if number % 7 == 3 else "5\n" for number in range(1_000))
    ran = stand.run("privatize", "-c", str(file), "trips", stdin=lines.encode())
    said = ran.stderr.decode().strip()
    held = ran.returncode == 2 and f"{len(range(3, 1_000, 7))} of 1,000" in said
    return Outcome(held, f"exit {ran.returncode}: {said[-80:]}")


ATTACKS = (
    Attack("slip-no-worker", "A query to a worker that is not there fails at once", nobody_answers),
    Attack("slip-bad-lines", "All bad lines of an input are counted", many_bad_lines),
)
