"""A day in the life: everything that operators do, while devices send and readers ask.

python -m tests.crash.day.run                        (all of it, some ten minutes)
python -m tests.crash.day.run --events restart,kill  (a part of it)

It prints a table, and ends with exit code 1 and what did not hold:

- All that was sent is counted, late or rejected, by each state, window by window.
- Every final comes within 15 s of its window's end, grace and idle time.
- No answer is an HTTP error.
- /readyz and statuses give no reason that is not true (`reasons.py`), and one for each final that
  comes after its window's idle time while workers run; documents and query name the key that
  withholds an estimate.

Three times stand still for finals, since no window can close in them (`halts`; the table has the
longest time of a final without and with them):

- During the move to another cluster, whose first step holds all windows open: what devices still
  send to the old cluster would be late otherwise.
- While windows of one collection wait for a partition without reports, because its `idle` is off.
- From when workers say that partitions were added until all have been restarted, for windows of
  that collection alone: if they closed without the new partitions, all reports there would be late.
  This has to be told by every worker.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from tests.brokers import broker
from tests.crash.day.story import EVENTS, Day, table


def main() -> None:
    parser = argparse.ArgumentParser(description="A day in the life of three collections.")
    parser.add_argument("--events", default=",".join(EVENTS), help="by default all: %(default)s")
    parser.add_argument("--pause", type=float, default=15.0, help="seconds after each event")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    events = given.events.split(",")
    if unknown := sorted(set(events) - set(EVENTS)):
        parser.error(f"expected events of {', '.join(EVENTS)}, got {', '.join(unknown)}")
    problems = run(events, pause_seconds=given.pause, seed=given.seed)
    for problem in problems:
        print(f"NOT HELD: {problem}")
    sys.exit(1 if problems else 0)


def run(events: list[str], *, pause_seconds: float, seed: int = 1) -> list[str]:
    """Live through a day on brokers of its own, print its table, and return what did not hold."""
    with ExitStack() as stack:
        here = stack.enter_context(broker("kafka"))
        there = stack.enter_context(broker("kafka")) if "cluster" in events else here
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ldpstream-day-")))
        day = Day(here, there, folder, seed=seed)
        stack.callback(day.close)
        began = time.monotonic()
        problems = asyncio.run(day.live(events, pause_seconds=pause_seconds))
        print(table(day, time.monotonic() - began))
    return problems


if __name__ == "__main__":
    main()
