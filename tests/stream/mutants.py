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
from importlib import import_module

from tests.stream.simulation.patched import MUTANTS
from tests.stream.simulation.run import explain, run

__all__ = ("MUTANTS", "take_away")
for _name in ("", "_gathered", "_intake", "_minimum"):
    import_module(f"tests.stream.simulation.broken{_name}")
for _name in ("groups", "tokens", "uneven"):
    import_module(f"tests.stream.simulation.{_name}")


def take_away(runs: int, words: Sequence[str]) -> int:
    names = [name for name in MUTANTS if not words or any(word in name for word in words)]
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
    make = MUTANTS[name].make
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
