"""`ldpstream estimate`: reports in, estimates with bounds out."""

from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

from ldpstream.agents.cli.terminal.common import (
    CHUNK,
    load_collection,
    refuse_one_report,
)
from ldpstream.agents.cli.terminal.errors import Refused
from ldpstream.agents.cli.terminal.options import Form
from ldpstream.agents.cli.terminal.query_options import query_parameters
from ldpstream.agents.cli.terminal.reports import read_reports
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.query.options import EstimateOptions
from ldpstream.mechanisms.base.errors import QueryError


def estimate_reports(
    config_file: str, name: str, reports: BinaryIO, *, form: Form, **query: Any
) -> None:
    """Print what a collection's reports in a file tell."""
    _, collection = load_collection(config_file, name)
    refuse_one_report(collection, "a worker, because lines of reports have no tokens")
    from ldpstream.agents.cli.terminal.labels import ShownLabels
    from ldpstream.agents.cli.terminal.tables import Showing, print_document
    from ldpstream.agents.document.build import build_document
    from ldpstream.agents.state.context import WindowTotals

    parameters = query_parameters(query)
    options = resolve_options(parameters, collection)
    mechanism = collection.spec.mechanism
    statistic = mechanism.empty()
    n = 0
    for chunk in read_reports(reports, collection.spec, chunk=CHUNK):
        mechanism.accumulate(statistic, chunk.reports)
        n += len(chunk.reports)
    totals = WindowTotals(0, 0, statistic, n, late=0, rejected=0)
    # Final, as a closed window is: nothing can be added to a file that was read to its end.
    document = build_document(collection, totals, window=None, final=True, options=options)
    showing = Showing(
        minimum=collection.minimum,
        together="simultaneous" in parameters,
        labels=ShownLabels.of_domain(collection.spec.domain, collection.names.value_labels),
    )
    print_document(document, form, showing)


def resolve_options(
    parameters: Mapping[str, Sequence[str]], collection: CollectionConfig
) -> EstimateOptions:
    """Return a collection's options, replaced where something else was asked for."""
    from ldpstream.agents.config.query.capabilities import read_options

    try:
        return read_options(collection.options, collection.spec, parameters)
    except QueryError as error:
        raise Refused(f"--{error}") from error
