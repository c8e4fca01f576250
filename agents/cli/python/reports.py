"""Reports as one object: draw them from values, save and read them, add and estimate them."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ldpstream.agents.cli.python.arrays import to_labels, to_times_ms
from ldpstream.agents.cli.python.query_options import build_options
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.reports import read_reports as read_lines
from ldpstream.agents.cli.terminal.reports import write_reports as write_lines
from ldpstream.agents.config.collection import CollectionConfig
from ldpstream.agents.config.query.options import EstimateRequest
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.state.context import WindowTotals
from ldpstream.mechanisms.base.arrays import Integers
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.base.texts import count
from ldpstream.mechanisms.domains.fitting import fit, has_ends, nearest_label
from ldpstream.mechanisms.exact.entropy import Entropy, SystemEntropy
from ldpstream.mechanisms.interface.mechanism import Reports

_CHUNK = 100_000


@dataclass(frozen=True, eq=False)
class ReportSet:
    """Any number of reports of one collection; sets can be added.

    `reports` are the mechanism's own n rows, `times_ms` their times if all have one. When they were
    drawn, `skipped` values were left out as bad, and `clamped` were moved into the domain.
    `privatize(collection, [])` is the empty set.
    """

    collection: CollectionConfig
    reports: Reports
    times_ms: Integers | None = None
    skipped: int = 0
    clamped: int = 0

    def __len__(self) -> int:
        return len(self.reports)

    def __add__(self, other: "ReportSet") -> "ReportSet":
        """Return the reports of both; times are kept if all non-empty sets have them.

        Raises:
            ValueError: for reports of another spec.
        """
        own, others = self.collection.spec, other.collection.spec
        if own.fingerprint != others.fingerprint:
            raise ValueError(
                f"expected reports with fingerprint {own.fingerprint.hex()}, got some from another "
                "spec: was the collection's mechanism, epsilon, domain or precision changed?"
            )
        timed = [one.times_ms for one in (self, other) if len(one)]
        known = [times_ms for times_ms in timed if times_ms is not None]
        return ReportSet(
            self.collection,
            np.concatenate([self.reports, other.reports]),
            np.concatenate(known) if known and len(known) == len(timed) else None,
            self.skipped + other.skipped,
            self.clamped + other.clamped,
        )

    def __repr__(self) -> str:
        return f"<{count(len(self), 'report')} of {self.collection.name}>"

    def to_lines(self) -> bytes:
        """Return the reports as lines, as `ldpstream privatize` writes them."""
        return write_lines(self.collection.spec, self.reports, self.times_ms)

    def save(self, path: str | Path) -> None:
        """Write the lines to a file, for `read_reports`, `ldpstream estimate` and `send`.

        Raises:
            OSError: where the file cannot be written.
        """
        Path(path).write_bytes(self.to_lines())


def privatize(
    collection: CollectionConfig,
    values: Any,
    *,
    times: Any = None,
    clamp: bool = False,
    skip_bad: bool = False,
    entropy: Entropy | None = None,
) -> ReportSet:
    """Randomise n values into reports, one each, with the operating system's randomness.

    Values are labels, numbers, or rows with one number per dimension: a list, a numpy array, a
    column or a table of pandas, pyarrow or polars. Records are a table or a mapping with a column
    for each attribute by its name, or a list of mappings. `times` are RFC 3339 texts, datetimes,
    `datetime64` or epoch milliseconds; they are cut to the collection's precision when written or
    sent. `clamp` moves numbers outside the domain to its nearest end; `skip_bad` leaves bad values
    out. A seeded `entropy` is only for tests.

    Raises:
        ValueOutsideDomainError: naming the position of the first bad value, never the value.
        ValueError: if there is not one time for each value; for `clamp` if values are not numbers;
            for a collection with `one_report`, whose devices send for themselves.
        TypeError: for anything but a sequence of values.
    """
    spec, source = collection.spec, entropy or SystemEntropy()
    domain = spec.domain
    if spec.one_report is not None:
        raise ValueError(f"{collection.name}: expected a collection without one_report")
    if clamp and not has_ends(domain):
        raise ValueError(f"clamp: expected a collection with only numbers, got {collection.name}")
    labels = to_labels(values, domain)
    times_ms = None if times is None else to_times_ms(times, len(labels))
    found = fit(
        labels,
        place=partial(domain.place, entropy=source),
        check=domain.check,
        move=partial(nearest_label, domain) if clamp else None,
    )
    if found.bad and not skip_bad:
        raise ValueOutsideDomainError(*next(iter(found.bad.items())))
    return ReportSet(
        collection,
        spec.mechanism.privatize(found.indices, entropy=source),
        None if times_ms is None else times_ms[found.good],
        skipped=len(found.bad),
        clamped=found.moved,
    )


def read_reports(collection: CollectionConfig, path: str | Path) -> ReportSet:
    """Return the reports of a file that `save` or `ldpstream privatize` wrote.

    Raises:
        ValueError: naming the line, for anything but a report of this collection.
        OSError: where the file cannot be opened.
    """
    spec = collection.spec
    found = privatize(collection, [])
    try:
        with Path(path).open("rb") as stream:
            for chunk in read_lines(stream, spec, chunk=_CHUNK):
                found += ReportSet(collection, chunk.reports, chunk.times_ms)
    except Refused as error:
        raise ValueError(error.message) from None
    return found


def estimate(
    reports: ReportSet, asked: EstimateRequest | None = None, **options: Any
) -> EstimateDocument:
    """Return the estimates that all reports together give, as `ldpstream estimate` prints them.

    The document holds what the collection publishes, unless a request, or its fields as keywords,
    ask for something else: `top=5`, `ranges=["3..9"]`, `quantiles=[0.5]` or `confidence=0.9`.

    Raises:
        ValueError: naming the option that is impossible, or does not fit the collection.
    """
    collection = reports.collection
    chosen = build_options(collection, asked, options)
    mechanism = collection.spec.mechanism
    statistic = mechanism.empty()
    mechanism.accumulate(statistic, reports.reports)
    totals = WindowTotals(0, 0, statistic, len(reports), late=0, rejected=0)
    return build_document(collection, totals, window=None, final=True, options=chosen)
