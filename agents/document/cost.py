"""Predict how much memory building a document takes.

Tables of a mechanism belong to the worker, and are not counted. Tests keep these figures above what
is measured.
"""

from typing import Final

from ldpstream.agents.query.options import EstimateOptions
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.wire.spec import CollectionSpec

_FIXED_BYTES: Final = 16 << 20
"""Chunks of arrays that are processed at a time."""
_ENTRY_BYTES: Final = 2_400
"""Per listed value: its bounds, its part of the document, and its text."""
_AREA_BYTES: Final = 1_200
"""Per value of a domain with areas: at most two areas, and all that their bounds need."""


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
    decoder = alone.decoder()
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
