"""`ldpstream certify`: what the mechanisms leak, proved in exact arithmetic."""

import csv
import json
import shutil
import textwrap
from collections.abc import Iterator
from functools import partial
from typing import Any

import click

from ldpstream.agents.cli.terminal.common import (
    load,
    load_collection,
    print_data,
    warn_of_nominal,
)
from ldpstream.agents.cli.terminal.errors import FAILED, Refused
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.config.privacy.over_time import charges
from ldpstream.agents.config.privacy.year import certificate_with_year, published
from ldpstream.mechanisms.base.canonical import Json, json_number
from ldpstream.mechanisms.base.errors import ValueOutsideDomainError
from ldpstream.mechanisms.channels.error_region import ErrorRegion, channel_boundary
from ldpstream.mechanisms.exact.dyadic import float_above


def certify_collections(
    context: click.Context,
    /,
    config_file: str,
    *,
    name: str | None,
    published_reports: int | None,
    delta: float,
    windows: int | None,
    year: bool,
    pair: tuple[str, str] | None,
) -> None:
    """Print certificates, and exit with 1 if one fails."""
    if pair is not None and name is None:
        raise Refused("--pair: expected NAME of the collection with it")
    if year and (published_reports, windows, pair) != (None, None, None):
        raise Refused("--year: expected no --published, --windows or --pair with it")
    config = load(config_file) if name is None else load_collection(config_file, name)[0]
    collections = list(config.collections.values()) if name is None else [config.collections[name]]
    warn_of_nominal(collections)
    # Reports under the earlier specs are still accepted, so these must keep their policies, too.
    certified = [each for collection in collections for each in (collection, *collection.accept)]
    certificates = [certificate_with_year(each) for each in certified]
    if published_reports is not None:
        for each, certificate in zip(certified, certificates, strict=True):
            certificate["published"] = _published(each, published_reports, delta)
    if windows is not None:
        for each, certificate in zip(certified, certificates, strict=True):
            certificate["windows"] = _windows(each, windows)
    if pair is not None:
        certificates[0]["region"] = error_region(collections[0], pair)
    passed = all(certificate["pass"] for certificate in certificates)
    document = {"pass": passed, "collections": certificates}
    if year:
        pages = ("\n".join(_page(certificate["year"])) for certificate in certificates)
        print_data("\n\n\n".join(pages))
    else:
        print_data(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False))
    if not passed:
        context.exit(FAILED)


def _published(collection: CollectionConfig, reports: int, delta: float) -> Json:
    """Return the central loss of one of this many reports, or why no bound is known."""
    bound = published(collection, reports, delta)
    if isinstance(bound, str):
        return {"reports": reports, "delta": delta, "losses": None, "why": bound}
    return bound.to_json()


def _page(year: Any) -> Iterator[str]:
    """Yield the lines of a year in words, which end with a place to sign."""
    wrap = partial(textwrap.wrap, width=min(88, shutil.get_terminal_size().columns))
    yield from (year["title"], "=" * len(year["title"]), "", *wrap(year["about"]))
    for reader in year["readers"]:
        yield from ("", *wrap(reader["who"]))
        yield from wrap(reader["said"], initial_indent="    ", subsequent_indent="    ")
    yield from ("", "In the clear with each report")
    for what in year["disclosed"]:
        yield from wrap(what, initial_indent="  - ", subsequent_indent="    ")
    if year["unprotected"]:
        yield from ("", "Not protected", *wrap(year["unprotected"], initial_indent="    "))
    yield from ("", *wrap(year["limits"]), "", "[ ] approved   [ ] refused, because " + 28 * "_")
    yield from ("", "", f"Name {20 * '_'}  Date {12 * '_'}  Signature {20 * '_'}")


def _windows(collection: CollectionConfig, windows: int) -> Json:
    """Return what the reports of any `windows` consecutive windows lose together.

    "exact" is the sum of the budgets of all reports or epochs. Where held reports are randomised
    again, the realised mechanism loses less: "low" and "high" bound the logarithm of its largest
    likelihood ratio (`l1-geometric`: only "high"). Where budgets grow with distance, "step" bounds
    it for two neighbouring values.
    """
    spec = collection.spec
    cost = charges(spec, collection.spread, windows)
    loss = cost * spec.charged.largest_loss()
    document: dict[str, Json] = {
        "windows": windows,
        "charges": cost,
        "loss": {"exact": str(loss), "float": float_above(loss)},
    }
    if spec.hold is not None and spec.hold.chain is not None:
        chain, most = spec.hold.chain, float_above(loss)
        bounds = _bounds(spec.hold.loss(windows, steps=chain.steps), chain.exact)
        high = min(bounds["high"], most)
        document["loss"] = {"exact": str(loss), "float": most, **bounds, "high": high}
        if chain.steps > 1:
            document["step"] = {**_bounds(spec.hold.loss(windows), chain.exact)}
    return document


def _bounds(ends: tuple[float, float], exact: bool) -> dict[str, float]:
    low, high = ends
    return {"low": low, "high": high} if exact else {"high": high}


# --- errors of tests between two values ----------------------------------------------------------


def error_region(collection: CollectionConfig, pair: tuple[str, str]) -> dict[str, Any]:
    """Return the region that the policy leaves to tests of a pair of labels, as CSV writes them.

    `boundary` are the best tests of the realised channel; it is null for a channel that is too
    large to list. A channel keeps the policy at the pair iff all of them are `inside`.
    """
    domain, mechanism = collection.spec.domain, collection.spec.mechanism
    try:
        value, other = domain.parse_columns(list(csv.reader(pair))).tolist()
    except ValueOutsideDomainError as error:
        raise Refused(f"--pair: expected {error.expected}, got {pair[error.position]}") from None
    if value == other:
        raise Refused(f"--pair: expected two different values, got {pair[0]} twice")
    region = ErrorRegion.of(mechanism.policy, value, other)
    document: dict[str, Any] = {
        "value": domain.label(value),
        "other": domain.label(other),
        "budgets": [
            json_number(float("inf") if budget is None else float(budget))
            for budget in (region.forward, region.backward)
        ],
        "corner": list(region.corner()),
        "boundary": None,
    }
    try:
        boundary = channel_boundary(mechanism.channel(), value, other)
    except ValueError as error:
        return document | {"why": str(error)}
    document["boundary"] = [[float(alarm), float(missed)] for alarm, missed in boundary]
    return document | {"inside": region.first_outside(boundary) is None}
