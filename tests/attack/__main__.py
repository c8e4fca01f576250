"""Run every attack. `python -m tests.attack`.

Exit status 1 where one succeeds.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.attack.attacks import all_attacks
from tests.attack.stand import Attack, Outcome, Stand
from tests.brokers import KINDS, Broker, broker


def main() -> int:
    """Run the attacks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--only", default="", help="attacks whose name contains this")
    parser.add_argument("--short", action="store_true", help="as the tests run them")
    arguments = parser.parse_args()
    table = Table("attack", "what must hold", "outcome")
    failed = False
    with broker(arguments.broker) as up:
        for attack in all_attacks():
            if arguments.only in attack.name:
                outcome = _outcome(attack, up, short=arguments.short)
                failed |= not outcome.held
                table.add_row(attack.name, attack.claim, _cell(outcome))
    Console(width=160).print(table)
    return int(failed)


def _outcome(attack: Attack, running: Broker, *, short: bool) -> Outcome:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ldpstream-attack-") as folder:
        stand = Stand(broker=running, folder=Path(folder), short=short)
        outcome = asyncio.run(attack.run(stand))
    seconds = time.monotonic() - began
    sys.stderr.write(f"{attack.name}: {_cell(outcome)} ({seconds:.0f} s)\n")
    return outcome


def _cell(outcome: Outcome) -> str:
    return f"{'held' if outcome.held else 'BROKEN'}: {outcome.figure}"


if __name__ == "__main__":
    sys.exit(main())
