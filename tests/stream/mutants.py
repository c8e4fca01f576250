"""The long form of the mutants: `python -m tests.stream.mutants [RUNS] [WORD ...]`.

Every rule of the protocol is taken away in turn, on all cores; the simulation must notice. With
words, only mutants whose names contain one of them, and their shortest schedules in full.
"""

import argparse
import logging
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.stream.simulation.broken import MUTANTS
from tests.stream.simulation.broken_gathered import GATHERED_MUTANTS
from tests.stream.simulation.broken_intake import INTAKE_MUTANTS
from tests.stream.simulation.broken_parts import PART_MUTANTS
from tests.stream.simulation.curious_attributes import ATTRIBUTE_MUTANTS
from tests.stream.simulation.run import explain, run
from tests.stream.simulation.tokens import TOKEN_MUTANTS
from tests.stream.simulation.uneven import UNEVEN_MUTANTS

_ALL = MUTANTS | GATHERED_MUTANTS | TOKEN_MUTANTS | PART_MUTANTS
_ALL |= ATTRIBUTE_MUTANTS | INTAKE_MUTANTS | UNEVEN_MUTANTS


def take_away(runs: int, words: Sequence[str]) -> int:
    names = [name for name in _ALL if not words or any(word in name for word in words)]
    missed = 0
    with ProcessPoolExecutor(initializer=_disable_logging) as pool:
        search = partial(_search, runs=runs, whole=bool(words))
        for name, found in zip(names, pool.map(search, names), strict=True):
            missed += found is None
            print(f"{name}: {found or f'NOT NOTICED in {runs} runs'}", flush=True)
    return 1 if missed else 0


def _disable_logging() -> None:
    logging.disable(logging.CRITICAL)


def _search(name: str, *, runs: int, whole: bool) -> str | None:
    """Return what the first seed that notices a mutant shows, or None."""
    make = _ALL[name]
    for seed in range(runs):
        if violated := run(seed, make=make).violated:
            return explain(seed, make=make) if whole else f"seed {seed}: {violated[:100]}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stream.mutants")
    parser.add_argument("runs", type=int, nargs="?", default=11_000)
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    return take_away(asked.runs, asked.words)


if __name__ == "__main__":
    sys.exit(main())
