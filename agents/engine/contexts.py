"""The state machine's view of a configured collection."""

from typing import Final

from ldpstream.agents.config import CollectionConfig
from ldpstream.agents.document.build import final_content
from ldpstream.agents.engine.clock import scaled_interval
from ldpstream.agents.state.context import Context

_FINALS_A_STEP: Final = 128
_ENTRIES_A_STEP: Final = 1 << 18
_SOURCE_WAIT_MS: Final = 250
_MOST_SOURCE_WAIT_MS: Final = 2_000
_LEAST_GAP_MS: Final = 2_000


def source_wait_ms(partitions: int) -> int:
    """Return how long a broker may delay a fetch of this many source partitions."""
    return int(scaled_interval(_SOURCE_WAIT_MS, partitions, most=_MOST_SOURCE_WAIT_MS))


def finals_a_step(statistic_size: int) -> int:
    """Return how many finals to build at once, for statistics with this many entries.

    Each blocks the event loop for about 1 ms, plus as much for every few thousand entries.
    """
    return max(1, min(_FINALS_A_STEP, _ENTRIES_A_STEP // statistic_size))


def make_context(
    collection: CollectionConfig, *, partitions: int, accepted: bool = False
) -> Context:
    """Return a collection as the state machine sees it.

    `partitions` are those of all sources that are read together; `accepted`: another collection
    accepts this spec.
    """
    return Context(
        spec=collection.spec,
        window=collection.window,
        make_final=final_content(collection),
        accept=tuple(earlier.spec for earlier in collection.accept),
        accepted=accepted,
        copy_rejected=collection.rejected == "copy",
        finals_a_step=finals_a_step(collection.spec.mechanism.statistic_size),
        gap_ms=max(_LEAST_GAP_MS, 4 * source_wait_ms(partitions)),
        minimum=collection.minimum,
        minimum_block=collection.minimum_block,
        release_ms=collection.publish_every_ms,
    )
