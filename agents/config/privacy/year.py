"""A collection's year in words, for whoever signs for it: what each kind of reader may learn.

A certificate is about one report. These sentences are about all that a device sends in 365 days, as
read by four kinds of readers; the page and `ldpstream certify --year` show them as they are.
"""

from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from ldpstream.agents.config.privacy.certificate import certify_collection, percent_text
from ldpstream.agents.config.privacy.delta import DELTA
from ldpstream.agents.config.privacy.factors import MOST_FACTOR, NO_LIMIT, loss_text, odds_factor
from ldpstream.agents.config.privacy.over_time import charges, limit_of
from ldpstream.agents.config.privacy.statement import (
    YEAR_MS,
    Central,
    central,
)
from ldpstream.mechanisms.base.canonical import Json
from ldpstream.mechanisms.base.errors import SpecError
from ldpstream.mechanisms.base.times import format_duration
from ldpstream.mechanisms.channels.permanent_draw import most_periods
from ldpstream.mechanisms.exact.dyadic import exp_bounds

if TYPE_CHECKING:
    from ldpstream.agents.config.collection import CollectionConfig

_NOT_ADDED: Final = "Not added up: the policy has single budgets for too many values."
_SENT: Final = {
    None: "sends one report in each, {reports:,} in all, unless its budget stops it earlier",
    "spread": "takes part in at most {reports:,} of them, drawn from its secret",
    "hold": "draws at most {reports:,} reports, and sends what follows from these alone",
    "words": "takes part in at most {reports:,} rounds, with one report in each",
}
"""What a device with a ledger does in a year, by what limits it."""


def certificate_with_year(collection: "CollectionConfig") -> dict[str, Json]:
    """Prove the policy of a collection, and say in `year` what its reports tell in a year."""
    certificate = certify_collection(collection.name, collection.spec, collection.spread)
    return {**certificate, "year": year_in_words(collection, passed=bool(certificate["pass"]))}


def year_in_words(collection: "CollectionConfig", *, passed: bool) -> Json:
    """Return what each kind of reader learns of a device in 365 days, as JSON.

    `passed` says whether the mechanism keeps its policy: if not, nothing is claimed of a year.
    """
    spec, each = collection.spec, format_duration(collection.window.pane_ms)
    windows = most_periods(YEAR_MS, collection.window.pane_ms)
    reports = charges(spec, collection.spread, windows)
    report: Fraction | None = None
    year: Fraction | None = None
    with suppress(SpecError):
        report = spec.mechanism.policy.largest_loss()
        year = reports * spec.charged.largest_loss()
    documents = _of_documents(collection, reports, year)
    readers: list[Json] = [
        {"who": who, **_limit(loss), "said": said}
        for who, loss, said in (
            _of_topic(collection, windows, reports, year),
            ("The same readers, of a device without a ledger", None, _without_ledger(report)),
            documents,
            _of_public(collection, documents[1]),
        )
    ]
    verdict = "holds, in exact arithmetic" if passed else "FAILS: nothing below is promised"
    return {
        "windows": windows,
        "title": f"{collection.name}: a year in words",
        "about": (
            f"Spec {spec.fingerprint.hex()}, mechanism {spec.mechanism.id}, "
            f"windows of {each}. Any 365 days, wherever they begin, touch up to {windows:,} of "
            f"them, as ledgers count them. Its certificate, which is about one report, {verdict}."
        ),
        "readers": readers,
        "disclosed": list(spec.disclosed()),
        "unprotected": collection.privacy.unprotected,
        "limits": (
            f"“{NO_LIMIT.capitalize()}” stands for odds that may change {MOST_FACTOR:,} times or "
            "more. All this is of this collection alone: what others ask of the same people adds "
            "up. It is proved of the mechanism as configured, not of the software on devices."
        ),
    }


def _limit(loss: Fraction | None) -> dict[str, Json]:
    """Return a loss and its factor as text; None where no number bounds it."""
    if loss is None:
        return {"loss": None, "factor": NO_LIMIT}
    return {"loss": loss_text(loss), "factor": odds_factor(loss)}


def _grouped(loss: Fraction) -> str:
    whole, point, rest = loss_text(loss).partition(".")
    return f"{int(whole):,}{point}{rest}"


def _odds_sentence(loss: Fraction) -> str:
    """Return what a loss means for somebody who weighs two histories of a device's values."""
    factor = odds_factor(loss)
    if factor == NO_LIMIT:
        return "there is no limit to how sure they may become of its values"
    ratio = exp_bounds(loss)[1]
    return (
        "the odds between two histories of its values that the policy protects change at most "
        f"{factor} times, and a guess of 50% becomes at most {percent_text(ratio / (ratio + 1))}"
    )


def _of_topic(
    collection: "CollectionConfig", windows: int, reports: int, year: Fraction | None
) -> tuple[str, Fraction | None, str]:
    sent = _SENT[limit_of(collection.spec, collection.spread)].format(reports=reports)
    loss = _NOT_ADDED
    if year is not None:
        loss = f"Together they lose at most {_grouped(year)}: {_odds_sentence(year)}."
    return (
        "Readers of single reports, of a device with a ledger",
        year,
        (
            "These are the operators of broker, gateway and workers, and whoever they show the "
            "topic or its copies to; the worst of them knows which reports are one device's. "
            f"In the up to {windows:,} windows of 365 days it {sent}. {loss}"
        ),
    )


def _without_ledger(report: Fraction | None) -> str:
    each = "" if report is None else f" Each loses at most {_grouped(report)}, and they add up."
    return f"Nothing counts its reports, so there is no limit.{each}"


def _of_documents(
    collection: "CollectionConfig", reports: int, year: Fraction | None
) -> tuple[str, Fraction | None, str]:
    """Return what published documents lose in a year, by adding up independent reports.

    A document is a sum of parts of at least `smallest_part` reports, each of one pane where panes
    have as many: then no part holds two reports of a device, and their (epsilon, delta) add up.
    """
    who, bound = "Readers of published documents alone", _central(collection)
    if isinstance(bound, str):
        return who, year, f"No better bound than that of single reports is known, since {bound}."
    loss = reports * Fraction(bound.epsilon)
    if year is not None:
        loss = min(loss, year)
    once_in = int(1 / (reports * Fraction(str(bound.delta))))
    pane = format_duration(collection.window.pane_ms)
    return (
        who,
        loss,
        (
            f"Where at least {bound.reports:,} report in each {pane}, those of a device are hidden "
            f"among the others, and lose at most {_grouped(loss)} in a year, but for a "
            f"chance of one in {once_in:,}: {_odds_sentence(loss)}. Where fewer report, or most of "
            "them are forged or known to the reader, the bound is that of single reports."
        ),
    )


def _of_public(
    collection: "CollectionConfig", documents: Fraction | None
) -> tuple[str, Fraction | None, str]:
    least = collection.minimum
    sums = f"sums of {least:,} or more reports" if least > 1 else "sums, however small"
    return (
        "The public, who hear what documents say",
        documents,
        (
            f"Numbers stand for {sums}, and tell at most as much of one device as documents do. "
            "What is true of the crowd is learned, also about those who never took part. That a "
            "device sends something, and when, is seen on its network."
        ),
    )


def _central(collection: "CollectionConfig") -> Central | str:
    """Return what a report loses in documents, or why no bound is known."""
    if collection.publish_every_ms is None and collection.smallest_part == 1:
        key = "minimum_block" if collection.minimum > 1 else "minimum"
        return f"documents may be about single reports: {key} is off"
    if collection.window.calendar is not None:
        # Ledgers know no calendar: two of their windows lie partly in one of the collection's.
        return "a device may report twice in a window: ledgers count from 1970 on, in UTC"
    reports = collection.smallest_part
    return published(collection, reports if reports > 1 else max(2, collection.minimum), DELTA)


def published(collection: "CollectionConfig", reports: int, delta: float) -> Central | str:
    """Return the central loss of one of this many reports, or why no bound is known."""
    least = collection.smallest_part
    if collection.spec.hold is not None:
        return "reports of several windows share one draw: it needs a collection without hold"
    if reports <= least:
        bound = central(collection.spec.mechanism, reports=reports, delta=delta)
        if bound is not None:
            return bound
        if collection.attributes:
            return "the number of reports about each attribute is random: no bound is known"
        return "the channel is too large to enumerate: no bound is known"
    if collection.publish_every_ms is not None:
        return 'open windows are published, too: it needs publish.every = "off"'
    key = "minimum" if least == collection.minimum else "minimum_block"
    return (
        f"documents may tell of as few reports as {least:,}, by {key}: "
        f"ask for --published {least}, or set {key} = {reports}"
    )
