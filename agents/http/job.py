"""What an answer is computed from, picklable for any thread or process, and what it costs.

The cost is a prediction of memory, without a mechanism's tables, which belong to the worker. Tests
keep it above what is measured.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np
from scipy.version import version as scipy_version

from ldpstream import __version__
from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.document.build import build_document
from ldpstream.agents.document.flat import document_csv
from ldpstream.agents.http.parameters import Format
from ldpstream.agents.privacy.certificate import certify_collection
from ldpstream.agents.query.options import EstimateOptions
from ldpstream.agents.state.context import WindowTotals
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.wire.spec import CollectionSpec

_FIXED_BYTES: Final = 16 << 20
"""Chunks of arrays that are processed at a time."""
_ENTRY_BYTES: Final = 2_400
"""Per listed value: its bounds, its part of the document, and its text."""
_AREA_BYTES: Final = 1_200
"""Per value of a domain with areas: at most two areas, and all that their bounds need."""


class Work(Protocol):
    """What a turn computes about a collection."""

    def tag(self, config: CollectionConfig) -> str:
        """Return a hash that identifies the answer, in hexadecimal."""

    def body(self, config: CollectionConfig) -> bytes:
        """Return the answer."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """Everything that an answer about a collection depends on, except its configuration."""

    totals: WindowTotals
    window: tuple[int, int]
    final: bool
    options: EstimateOptions
    form: Format
    partial: bool

    def tag(self, config: CollectionConfig) -> str:
        """Return a hash that identifies this answer, in hexadecimal.

        It covers only what the answer shows: of anything else, readers could confirm a guess.
        """
        totals = self.totals
        parts = (
            (__version__, np.__version__, scipy_version, self.form),
            (config.name, config.spec.fingerprint, self.final),
            (config.minimum, config.minimum_block, config.spread, config.central),
            (self.window, totals.start_ms, totals.end_ms, totals.withheld, self.partial),
            (totals.n, totals.late, totals.rejected, totals.lost),
            self.options,
        )
        digest = hashlib.blake2b(repr(parts).encode(), digest_size=16)
        if totals.n >= config.minimum:
            digest.update(totals.statistic.data)
            digest.update(b"" if totals.merged is None else totals.merged.data)
        return digest.hexdigest()

    def body(self, config: CollectionConfig) -> bytes:
        """Return the document of the span, as JSON or CSV."""
        document = build_document(
            config,
            self.totals,
            window=self.window,
            final=self.final,
            options=self.options,
            partial=self.partial,
        )
        return document_csv(document) if self.form == "csv" else document.to_json()


@dataclass(frozen=True)
class Proof:
    """A collection's certificate, which depends on its configuration alone."""

    def tag(self, config: CollectionConfig) -> str:
        """Return the fingerprint of the spec that is proved."""
        return config.spec.fingerprint.hex()

    def body(self, config: CollectionConfig) -> bytes:
        """Return what `ldpstream certify` prints of the collection, as JSON."""
        proved = certify_collection(config.name, config.spec, config.spread)
        return json.dumps(proved, ensure_ascii=False, allow_nan=False).encode()


@dataclass(frozen=True)
class Answer:
    """An answer's tag and body; the body is None if the reader has it."""

    tag: str
    body: bytes | None


MakeJob: TypeAlias = Callable[[], Work]
"""Adds up the totals of a job, which takes too long for the event loop."""


def answered(
    config: CollectionConfig,
    make: MakeJob,
    known: frozenset[str],
    body: Callable[[Work, CollectionConfig], bytes],
) -> Answer:
    """Return the answer to a job, whose `body` is computed unless its tag, or a star, is known."""
    job = make()
    tag = job.tag(config)
    return Answer(tag, None if known & {tag, "*"} else body(job, config))


def answer_bytes(spec: CollectionSpec, options: EstimateOptions) -> int:
    """Return the most memory that a document with these options takes to build and write.

    Includes the statistic, and does not depend on the reports. Prefixes for quantiles are prepared
    once, and not counted.
    """
    if spec.attributes:
        asked = [options.attribute] if options.attribute else list(spec.attributes)
        each = [answer_bytes(spec.attributes[name], options.about(name)) for name in asked]
        return 8 * spec.mechanism.statistic_size + sum(each)
    mechanism, size = spec.mechanism, spec.domain.estimated.size
    statistic, values = 8 * mechanism.statistic_size, 8 * mechanism.size
    # `scratch` includes the decoder's result, which is as long as the statistic. With public
    # weights, values are decoded from one of three sums.
    alone = mechanism.values if isinstance(mechanism, PublicWeights) else mechanism
    decoder = alone.decoder
    decoded = int(decoder.scratch * statistic)
    # The parts are computed one after another, so the largest counts.
    steps = [0 if decoder.groups() is None else 2 * statistic]
    if options.top != 0 or options.project != "none":
        steps.append(max(decoded + values, (4 if options.project == "none" else 7) * values))
    queries = len(options.ranges) + len(options.linear)
    if queries:
        kept = values * (queries + (options.project != "none"))
        # A linear query decodes its squares as well.
        steps.append(decoded + 4 * statistic + (11 if options.linear else 6) * values + kept)
    if options.areas:
        steps.append(decoded + 4 * statistic + _AREA_BYTES * size)
    listed = size if options.top is None else min(options.top, size)
    return _FIXED_BYTES + statistic + max(steps) + _ENTRY_BYTES * listed
