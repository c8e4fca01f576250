"""What the state machine needs to know about its collection, and the exact totals of a span."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from ldpstream.agents.state.disclosure_groups import Merged
from ldpstream.agents.state.windows import NOTHING_LOST, MissingMessages, WindowSpec
from ldpstream.mechanisms.interface.mechanism import Statistic
from ldpstream.mechanisms.wire.spec import CollectionSpec

RESERVE_BYTES: Final = 16 << 20
"""The largest reserve of a pane: where it would need more, nothing is released of open panes."""

WaitingKey = Literal["minimum", "minimum_block", "publish.every"]


@dataclass(frozen=True)
class Waiting:
    """The `reports` of a span that an answer does not hold yet, and what they wait for.

    `until` is "reports": `more` of them in the span, or that it closes; "closing": that it closes,
    whatever is reported; "later": `more` reports after the span, in panes that have to close.
    `because` is the key that makes them wait.
    """

    reports: int
    until: Literal["reports", "closing", "later"]
    more: int | None = None
    because: WaitingKey = "minimum"


@dataclass(frozen=True, eq=False)
class WindowTotals:
    """Exact totals of a span `[start_ms, end_ms)` of whole panes, over all partitions.

    - `window` is the span that the totals stand for, None if it is exactly the requested span
      (`ldpstream.agents.state.view`).
    - `withheld`: nothing but `n` may be disclosed.
    - `statistic` is the mechanism's, int64 of shape `(statistic_size,)`, of the `n` counted
      reports.
    - `late` counts reports of the span's panes that came too late.
    - `rejected` counts the collection's rejected messages since it began, as their event times
      cannot be trusted.
    - `lost` bounds the messages that retention deleted unread and that may belong to the span.
    - `merged`, bool `(blocks,)` or None: of these blocks the statistic has only the total number of
      reports (`ldpstream.agents.state.disclosure_groups`).
    - `waiting`: what the totals lack because of `minimum`, None for nothing.
    - `attributes`: of records with `minimum`, the totals of the reports about each attribute, in
      order; then there is no `statistic` of all. In each of them, `among` is the number of reports
      about all attributes in its span.
    """

    start_ms: int
    end_ms: int
    statistic: Statistic
    n: int
    late: int
    rejected: int
    withheld: bool = False
    window: tuple[int, int] | None = None
    lost: MissingMessages = NOTHING_LOST
    merged: Merged | None = None
    waiting: Waiting | None = None
    attributes: "tuple[WindowTotals, ...]" = ()
    among: int = 0


@dataclass(frozen=True, kw_only=True)
class Context:
    """A collection as the state machine sees it.

    - `make_final` makes the content of a final (below 900 KB, the broker's limit on a record) from
      the window's totals; it must be pure. At most `finals_a_step` finals are made, and as many
      panes gathered, at once, because a long replay may close thousands of windows.
    - `chunk` is the number of the statistic's entries in one record. It is part of the state's
      identity.
    - `accept` holds the fingerprints of specs whose frames belong to their own states: they are
      neither counted nor rejected here. `accepted`: this state belongs to such a spec, and another
      state decides all messages that are not frames of `spec`.
    - `copy_rejected`: rejected messages are copied, not only counted.
    - `one_report`: a token counts once per pane. A record holds `token_chunk` tokens, which
      determines what is stored. The open panes of a partition hold at most `tokens`, shared equally
      among them.
    - `gap_ms` is the longest time between two end-of-log probes, and the greatest age of the last,
      for a partition to be idle.
    - `minimum` above 1: answers are sums of parts with at least this many reports, for records of
      each attribute (`ldpstream.agents.state.view`), and those of open panes advance at most every
      `release_ms`; None: they hold nothing of open panes.
    - `minimum_block` above 1: answers hold nothing of open panes, and small blocks of a part are
      merged (`ldpstream.agents.state.disclosure_groups`).
    """

    spec: CollectionSpec
    window: WindowSpec
    make_final: Callable[[WindowTotals], bytes]
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
    release_ms: int | None = 0

    def __post_init__(self) -> None:
        if not 1 <= self.chunk <= 65_536 or self.finals_a_step < 1:
            raise ValueError("expected 1 <= chunk <= 65,536 and finals_a_step >= 1")
        if self.minimum_block > 1 and self.minimum_block > self.minimum:
            raise ValueError("expected minimum_block <= minimum: a part may hold no more reports")

    def chunk_length(self, number: int) -> int:
        """Return the number of entries in a chunk of the statistic."""
        return min(self.chunk, self.spec.mechanism.statistic_size - number * self.chunk)

    @property
    def hides_open(self) -> WaitingKey | None:
        """The key because of which answers contain nothing of open panes; None: they do."""
        if self.release_ms is None:
            return "publish.every"
        if self.minimum_block > 1:
            return "minimum_block"
        mechanism = self.spec.mechanism
        reserve_bytes = self.minimum * len(mechanism.slices) * mechanism.report_bytes
        return "minimum" if reserve_bytes > RESERVE_BYTES else None

    @property
    def attributes(self) -> int:
        """The number of attributes of records; other values count as one."""
        return len(self.spec.mechanism.slices)

    @property
    def keeps_reserves(self) -> bool:
        """Whether partitions keep the reports that answers about open panes may leave out."""
        return self.minimum > 1 and self.hides_open is None

    @property
    def tokens_a_pane(self) -> int:
        """How many tokens a pane of a partition may hold, at least one.

        Each pane has its own share: reports of the next pane must be counted, because they close
        this one.
        """
        return max(1, self.tokens // self.window.open_panes)
