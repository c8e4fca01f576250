"""The long form of the mutants: `python -m tests.stream.mutants [RUNS] [WORD ...]`.

Every rule of the protocol is taken away in turn; the simulation must notice. With words, only the
mutants whose names hold one of them, and their shortest schedules in full.
"""

import argparse
import logging
import sys
from collections.abc import Sequence

from tests.stream.simulation.broken import MUTANTS
from tests.stream.simulation.broken_gathered import GATHERED_MUTANTS
from tests.stream.simulation.broken_intake import INTAKE_MUTANTS
from tests.stream.simulation.broken_parts import PART_MUTANTS
from tests.stream.simulation.packed import PACKED_MUTANTS
from tests.stream.simulation.run import explain, run, shrink
from tests.stream.simulation.tokens import TOKEN_MUTANTS


def take_away(runs: int, words: Sequence[str]) -> int:
    missed = 0
    mutants = {**MUTANTS, **GATHERED_MUTANTS, **TOKEN_MUTANTS, **PACKED_MUTANTS, **PART_MUTANTS}
    mutants |= INTAKE_MUTANTS
    for name, make in mutants.items():
        if words and not any(word in name for word in words):
            continue
        seed = next((seed for seed in range(runs) if run(seed, make=make).violated), None)
        if seed is None:
            missed += 1
            print(f"{name}: NOT NOTICED in {runs} runs", flush=True)
        elif words:
            print(f"{name}: {explain(seed, make=make)}", flush=True)
        else:
            steps = len(shrink(seed, make=make))
            violated = run(seed, make=make).violated or ""
            print(f"{name}: seed {seed}, {steps} steps: {violated[:100]}", flush=True)
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stream.mutants")
    parser.add_argument("runs", type=int, nargs="?", default=11_000)
    parser.add_argument("words", nargs="*")
    asked = parser.parse_args()
    logging.disable(logging.CRITICAL)
    return take_away(asked.runs, asked.words)


if __name__ == "__main__":
    sys.exit(main())
