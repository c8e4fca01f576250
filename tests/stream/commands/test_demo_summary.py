"""The demonstration's collection, what was sent to it, and a summary that flags differences."""

import io
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from ldpstream.agents.cli.demonstration.devices import (
    BLOCKS,
    COLLECTION,
    PLACES,
    WINDOW_MS,
    SentReports,
    TruthComparison,
    compare,
    demo_config,
)
from ldpstream.agents.cli.demonstration.run import DemoSummary, print_summary
from ldpstream.agents.document.answers import CollectionStatus, PartitionStatus, WindowState
from ldpstream.agents.document.entries import ValueEstimate
from ldpstream.agents.document.model import EstimateDocument, Window
from ldpstream.mechanisms.base.times import format_time
from tests.stream.serving import START_MS

FEW = ("a/x", "a/y", "b/x")


def test_the_demonstration_is_a_configuration_like_any_other() -> None:
    config = demo_config(bootstrap="127.0.0.1:1", port=0)
    collection = config.collections[COLLECTION]
    assert collection.spec.domain.size == len(set(PLACES)) == 150
    assert {len(block) for block in BLOCKS} <= set(range(5, 21))
    assert collection.window.size_ms == WINDOW_MS
    assert collection.spec.mechanism.certify().passed


def made_sent() -> SentReports:
    sent = SentReports(FEW, window_ms=1_000)
    sent.visit(np.array([0, 0, 0, 1]), START_MS + 999)
    sent.visit(np.array([2, 2]), START_MS + 1_000)
    sent.visit(np.array([1, 1, 1, 1]), START_MS)
    sent.late += 2
    sent.rejected += 1
    return sent


def test_the_ledger_knows_what_was_sent() -> None:
    sent = made_sent()
    assert (sent.total, sent.counted, sent.late, sent.rejected) == (13, 10, 2, 1)
    assert sent.newest(9) == [START_MS, START_MS + 1_000]
    assert sent.newest(1) == [START_MS + 1_000]
    assert (sent.n(START_MS), sent.n(START_MS + 5_000)) == (8, 0)
    assert sent.truth[START_MS].tolist() == [3, 5, 0]
    sent.visit(np.array([], dtype=np.int64), 0)
    assert 0 not in sent.truth


def entry(place: str, low: float | None, share: float | None, high: float | None) -> ValueEstimate:
    return ValueEstimate(
        value=place, share=share, count=share, se=0.1, low=low, high=high, influence=0.1
    )


def document(start_ms: int, n: int, *entries: ValueEstimate) -> EstimateDocument:
    window = Window(start=format_time(start_ms), end=format_time(start_ms + 1_000))
    return EstimateDocument(
        collection="visits", fingerprint="00", window=window, n=n, final=True, withheld=False,
        confidence=0.95, distribution=list(entries),
    )  # fmt: skip


def status(counted: int, late: int, rejected: Mapping[str, int]) -> CollectionStatus:
    partition = PartitionStatus(
        partition=0, owned=True, next=1, end_offset=1, lag=0, watermark=None, idle=False,
        counted=counted, late=late, rejected=dict(rejected), lost_offsets=0,
    )  # fmt: skip
    return CollectionStatus(
        collection="visits", fingerprint="00", ready=True, stopped=False, problems=[],
        counted=counted, late=late,
        rejected=sum(rejected.values()), lost_offsets=0, partitions=[partition],
    )  # fmt: skip


def window(start_ms: int, n: int, *, final: bool = True) -> WindowState:
    span = Window(start=format_time(start_ms), end=format_time(start_ms + 1_000))
    return WindowState(window=span, n=n, late=0, final=final, published=final)


@pytest.fixture
def summary() -> DemoSummary:
    entries = (
        entry("a/x", 0.3, 0.4, 0.5),
        entry("a/y", 0.1, 0.2, 0.3),
        entry("b/x", -0.1, 0.0, 0.1),
    )
    first = document(START_MS, 8, *entries)
    return DemoSummary(
        sent=made_sent(),
        status=status(10, 2, {"future": 1}),
        windows={START_MS: window(START_MS, 8), START_MS + 1_000: window(START_MS + 1_000, 2)},
        documents={START_MS: first},
    )


def printed(summary: DemoSummary) -> str:
    console = Console(file=io.StringIO(), width=160)
    print_summary(summary, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_good_summary_says_so(summary: DemoSummary) -> None:
    assert summary.good
    text = printed(summary)
    assert "accounted  counted + late + rejected = sent = 13" in text
    assert "rejected   1; the devices sent 1 bad ones on purpose (future 1)" in text
    assert "windows    2 final" in text
    # 3/8 is inside [0.3, 0.5], 5/8 is not inside [0.1, 0.3], and 0 is inside [-0.1, 0.1].
    assert "2 of 3 true shares are inside their 95% bounds: 66.7%" in text
    assert "37.50%" in text


@pytest.mark.parametrize(
    ("decided", "named"),
    [
        ((9, 2, {"future": 1}), "counted + late + rejected = 12, but the devices sent 13"),
        ((11, 2, {"future": 1}), "counted + late + rejected = 14"),
        ((9, 3, {"future": 1}), "10 to count, 2 late, 1 bad"),
        ((10, 1, {"future": 2}), "10 to count, 2 late, 1 bad"),
    ],
)
def test_reports_that_are_not_accounted_for_are_flagged(
    summary: DemoSummary, decided: tuple[int, int, dict[str, int]], named: str
) -> None:
    wrong = replace(summary, status=status(*decided))
    assert not wrong.good
    text = printed(wrong)
    assert "NOT ACCOUNTED" in text
    assert named in text
    assert "accounted " not in text


@pytest.mark.parametrize(
    ("windows", "named"),
    [
        ({START_MS: window(START_MS, 8)}, "a window of 2 reports is not final"),
        (
            {
                START_MS: window(START_MS, 8),
                START_MS + 1_000: window(START_MS + 1_000, 2, final=False),
            },
            "a window of 2 reports is not final",
        ),
        (
            {START_MS: window(START_MS, 7), START_MS + 1_000: window(START_MS + 1_000, 3)},
            "has 7 of 8 reports",
        ),
    ],
)
def test_windows_that_differ_are_flagged(
    summary: DemoSummary, windows: dict[int, WindowState], named: str
) -> None:
    wrong = replace(summary, windows=windows)
    assert not wrong.good
    text = printed(wrong)
    assert "WINDOWS DIFFER" in text
    assert named in text


def test_a_demonstration_without_reports_is_not_good(summary: DemoSummary) -> None:
    empty = replace(
        summary, sent=SentReports(FEW, window_ms=1_000), status=status(0, 0, {}), windows={},
        documents={},
    )  # fmt: skip
    assert not empty.good
    assert "no final window has enough reports" in printed(empty)


def test_estimates_stand_beside_the_truth_of_the_same_window() -> None:
    sent = made_sent()
    later = document(
        START_MS + 1_000, 2, entry("a/x", None, None, None), entry("b/x", 0.5, 1.0, 1.5)
    )
    first, undefined = compare(later, sent)
    assert (first.name, first.truth, first.inside) == ("b/x", 1.0, True)
    assert (undefined.truth, undefined.inside) == (0.0, None)
    unknown = compare(document(0, 2, entry("b/x", 0.5, 1.0, 1.5)), sent)
    assert unknown == [TruthComparison(entry("b/x", 0.5, 1.0, 1.5), None)]
