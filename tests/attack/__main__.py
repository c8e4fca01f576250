"""Run every attack on an earlier commit and on this checkout. `python -m tests.attack`.

Exit status 1 where an attack succeeds on this checkout.
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
from tests.checkouts import HERE, extract


def main() -> int:
    """Run the attacks and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", default="5846c59", help="a commit; `none` runs this one alone")
    parser.add_argument("--broker", choices=KINDS, default="kafka")
    parser.add_argument("--only", default="", help="attacks whose name contains this")
    parser.add_argument("--short", action="store_true", help="as the tests run them")
    arguments = parser.parse_args()
    attacks = [attack for attack in all_attacks() if arguments.only in attack.name]
    table = Table("attack", "what must hold", "before", "now")
    failed = False
    with (
        tempfile.TemporaryDirectory(prefix="ldpstream-attack-") as name,
        broker(arguments.broker) as up,
    ):
        folder = Path(name)
        before = None if arguments.before == "none" else extract(arguments.before, folder)
        for attack in attacks:
            rows = [
                _outcome(attack, checkout, up, folder, short=arguments.short)
                for checkout in (before, HERE)
            ]
            failed |= rows[1] is None or not rows[1].held
            table.add_row(attack.name, attack.claim, *map(_cell, rows))
    Console(width=160).print(table)
    return int(failed)


def _outcome(
    attack: Attack, checkout: Path | None, running: Broker, folder: Path, *, short: bool
) -> Outcome | None:
    if checkout is None:
        return None
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder) as own:
        stand = Stand(checkout=checkout, broker=running, folder=Path(own), short=short)
        outcome = asyncio.run(attack.run(stand))
    seconds = time.monotonic() - began
    where = "now" if checkout == HERE else "before"
    sys.stderr.write(f"{attack.name} {where}: {_cell(outcome)} ({seconds:.0f} s)\n")
    return outcome


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return "-"
    return f"{'held' if outcome.held else 'BROKEN'}: {outcome.figure}"


if __name__ == "__main__":
    sys.exit(main())
