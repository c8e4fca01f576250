"""What the state machine needs to know about its collection, and what it tells about a span."""

from collections.abc import Callable
from dataclasses import dataclass

from ldpstream.agents.state.blocks import Merged
from ldpstream.agents.state.gaps import NOTHING_LOST, Lost
from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.interface.mechanism import Statistic
from ldpstream.mechanisms.wire.spec import CollectionSpec


@dataclass(frozen=True, eq=False)
class WindowTotals:
    """Exact totals of a span `[start_ms, end_ms)` of whole panes, all partitions together.

    `window` is what the totals stand for, None where that is the span itself and not less
    (`ldpstream.agents.partition.answers`). `withheld` says that nothing may be told but `n`.
    `statistic` is the mechanism's, int64 of shape `(statistic_size,)`, of the `n` reports counted
    in the span, and `late` of its panes' reports came too late to count. `rejected` messages have
    no event time to be trusted: it is the collection's number of them since it began. `lost` says
    what the source's retention deleted unread and may have belonged to the span. Of the blocks that
    are `merged`, bool `(blocks,)`, the statistic has the total number of reports alone
    (`ldpstream.agents.state.blocks`); None where none are.
    """

    start_ms: int
    end_ms: int
    statistic: Statistic
    n: int
    late: int
    rejected: int
    withheld: bool = False
    window: tuple[int, int] | None = None
    lost: Lost = NOTHING_LOST
    merged: Merged | None = None


@dataclass(frozen=True, kw_only=True)
class Context:
    """A collection as the state machine sees it.

    `compose` writes the content of a final, some bytes (below 900 KB, the broker's limit on a
    record), from the window's totals; it must be pure. `chunk` is the number of the statistic's
    entries in one record: it belongs to the identity of the state. Frames of the specs in `accept`
    are left to those specs' own states: neither counted nor rejected here. `accepted` says that
    this is such a state: another one decides all messages that are no frames of `spec`.
    `copy_rejected` says whether rejected messages are copied or counted only. At most
    `finals_a_step` finals are composed at once: a long replay may close thousands. With
    `one_report` a record holds `token_chunk` tokens; what is stored depends on it. The open panes
    of a partition hold at most `tokens` of them, each an equal part. `gap_ms` is how far end-of-log
    probes may lie apart, and how old the last one may be, for a partition to be idle. With
    `minimum` above 1 answers are sums of parts with at least so many reports
    (`ldpstream.agents.state.parts`), and those of open panes go on at most every `release_ms`. With
    `minimum_block` above 1 they hold nothing of open panes, and parts are told with small blocks
    merged (`ldpstream.agents.state.blocks`).
    """

    spec: CollectionSpec
    window: WindowSpec
    compose: Callable[[WindowTotals], bytes]
    chunk: int = 4096
    accept: tuple[CollectionSpec, ...] = ()
    accepted: bool = False
    copy_rejected: bool = True
    finals_a_step: int = 16
    token_chunk: int = 1024
    tokens: int = 1 << 25
    gap_ms: int = 2_000
    minimum: int = 1
    minimum_block: int = 1
    release_ms: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.chunk <= 65_536 or self.finals_a_step < 1:
            raise ValueError("expected 1 <= chunk <= 65,536 and finals_a_step >= 1")
        if self.minimum_block > 1 and self.minimum_block > self.minimum:
            raise ValueError("expected minimum_block <= minimum: a part holds no more for sure")

    @property
    def tokens_a_pane(self) -> int:
        """How many reports of tokens are counted in a pane of a partition, at least one.

        Each pane has a part of its own: the next one's reports have to be counted, because they
        close this one.
        """
        return max(1, self.tokens // self.window.open_panes)
