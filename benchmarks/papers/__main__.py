"""Every figure and table of the papers, ours beside theirs: `python -m benchmarks.papers`.

One table, without pictures: `ca_figure2`, `ml_figure1` and `lip_figures` draw. What the papers
print as curves alone has no digits; there "theirs" is their formula at the same setting. With
`--data`, the folder with the data sets, also what is measured on them; `--quick` measures less.
"""

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.papers.rows import all_rows

WIDTH = 220


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.papers")
    parser.add_argument("--data", type=Path, help="the folder with the data sets")
    parser.add_argument("--quick", action="store_true", help="few users and repetitions")
    options = parser.parse_args(arguments)
    table = Table("paper", "setting", "what", "theirs", "ours", "remark")
    for row in all_rows(options.data, quick=options.quick):
        table.add_row(row.item, row.setting, row.quantity, row.theirs, row.ours, row.remark)
        sys.stderr.write(f"{row.item}: {row.setting}\n")
    Console(width=WIDTH).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
