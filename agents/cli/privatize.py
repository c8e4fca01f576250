"""`ldpstream privatize`: turn values into reports."""

import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import numpy as np

from ldpstream.agents.cli.terminal.common import (
    CHUNK,
    collect_rarely,
    load_collection,
    refuse_one_report,
    refuse_words,
)
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.ledgers import opened, releases
from ldpstream.agents.cli.terminal.options import ReadingOptions, Spending
from ldpstream.agents.cli.terminal.reports import write_reports, write_table
from ldpstream.agents.cli.terminal.value_options import Reading
from ldpstream.agents.cli.terminal.values import read_values
from ldpstream.agents.config import CollectionConfig
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.files import check_replaceable, replaced_file
from ldpstream.mechanisms.interface.mechanism import Reports
from ldpstream.mechanisms.ledger import Ledger
from ldpstream.mechanisms.wire.spec import CollectionSpec


def privatize_values(
    config_file: str,
    name: str,
    values: BinaryIO,
    *,
    options: ReadingOptions,
    spending: Spending,
    to: Path | None,
) -> None:
    """Write a report for each line of values."""
    _, collection = load_collection(config_file, name)
    refuse_words(collection)
    refuse_one_report(collection, "send --ledger, because a line of privatize has no token")
    reading = Reading.of(collection, options)
    if spending.ledger is not None:
        if to is not None:
            raise Refused("--to: expected no --ledger, whose reports are written as lines")
        with opened(collection, spending.ledger, spending) as ledger:
            _keep(ledger, collection, values, reading)
        return
    spending.refuse()
    spec = collection.spec
    collect_rarely()
    if to is not None:
        try:
            check_replaceable(to)
        except ValueError as error:
            raise Refused(f"--to: {error}") from error
        with replaced_file(to) as sink, closing(_draw(spec, values, reading)) as chunks:
            write_table(sink, spec, chunks)
        return
    for reports, times_ms in _draw(spec, values, reading):
        sys.stdout.buffer.write(write_reports(spec, reports, times_ms))
    sys.stdout.buffer.flush()


def _draw(
    spec: CollectionSpec, values: BinaryIO, reading: Reading
) -> Generator[tuple[Reports, Integers | None], None, None]:
    for chunk in read_values(values, spec.domain, reading, chunk=CHUNK):
        yield spec.mechanism.privatize(chunk.indices), chunk.times_ms


def _keep(ledger: Ledger, collection: CollectionConfig, values: BinaryIO, reading: Reading) -> None:
    """Write the report of each line's window, the same one if a window occurs again."""
    spec = collection.spec
    try:
        for release in releases(ledger, collection, values, reading):
            reports, _ = spec.mechanism.decode(release.payload)
            times_ms = np.array([release.time_ms]) if reading.times else None
            sys.stdout.buffer.write(write_reports(spec, reports, times_ms))
    finally:
        sys.stdout.buffer.flush()
