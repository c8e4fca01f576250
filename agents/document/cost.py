"""What building a document takes of memory, told before anything is computed.

Tables of a mechanism belong to the worker; counted here is what one document needs besides.
Tests keep these figures above what is measured.
"""

from typing import Final

from ldpstream.agents.query.options import EstimateOptions
from ldpstream.mechanisms.families.weights.public import PublicWeights
from ldpstream.mechanisms.wire.spec import CollectionSpec

_FIXED_BYTES: Final = 16 << 20
"""Parts of arrays that are worked on at a time."""
_ENTRY_BYTES: Final = 2_400
"""Of a listed value: its bounds, its part of the document, and its text."""
_AREA_BYTES: Final = 1_200
"""Of a value of a domain whose areas are told: at most two areas, and all that bounds need."""


def answer_bytes(spec: CollectionSpec, options: EstimateOptions) -> int:
    """Return what a document with these options takes at most while it is built and written.

    The statistic included, whatever was reported. Prefixes for quantiles are prepared once, and
    not counted.
    """
    if spec.attributes:
        asked = [options.attribute] if options.attribute else list(spec.attributes)
        each = [answer_bytes(spec.attributes[name], options.about(name)) for name in asked]
        return 8 * spec.mechanism.statistic_size + sum(each)
    mechanism, size = spec.mechanism, spec.domain.estimated.size
    statistic, values = 8 * mechanism.statistic_size, 8 * mechanism.size
    # Among them the decoder's result, which is as long as the statistic.
    # With weights in the clear values are decoded from one of three sums.
    alone = mechanism.values if isinstance(mechanism, PublicWeights) else mechanism
    decoder = alone.decoder()
    decoded = int(decoder.scratch * statistic)
    # Parts are added up one by one.
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
