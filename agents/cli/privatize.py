"""`ldpstream privatize`: values in, reports out."""

import sys
from typing import BinaryIO

import click

from ldpstream.agents.cli.common import CHUNK, config_option, load_collection
from ldpstream.agents.cli.reports import write_reports
from ldpstream.agents.cli.values import read_values


@click.command()
@config_option
@click.option("--times", is_flag=True, help="Lines begin with a time, which goes with the report.")
@click.argument("name")
@click.argument("values", type=click.File("rb"), default="-")
def privatize(config_file: str, name: str, values: BinaryIO, *, times: bool) -> None:
    """Turn value lines (a file, or stdin) into reports, one JSON object a line.

    A line is a label, an integer, or one column a dimension ("row,column" on a grid); with --times
    an RFC 3339 time or epoch milliseconds comes first. Randomness is the operating system's.
    """
    _, collection = load_collection(config_file, name)
    spec = collection.spec
    for chunk in read_values(values, spec.domain, times=times, chunk=CHUNK):
        reports = spec.mechanism.privatize(chunk.indices)
        sys.stdout.buffer.write(write_reports(spec, reports, chunk.times_ms))
    sys.stdout.buffer.flush()
