"""The demonstration's devices, what was sent, and a summary that flags differences."""

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from ldpstream.agents.cli.demonstration.devices import (
    COLLECTIONS,
    PERIOD_SECONDS,
    WINDOW_MS,
    Crowd,
    SentReports,
    demo_config,
)
from ldpstream.agents.cli.demonstration.run import DemoSummary, print_summary
from ldpstream.agents.document.answers import CollectionStatus
from ldpstream.agents.document.entries import ValueEstimate
from ldpstream.agents.document.model import EstimateDocument, Window
from ldpstream.mechanisms.base.times import format_time
from ldpstream.mechanisms.domains.labels import Labels
from tests.stream.serving import START_MS

FEW = Labels(["a/x", "a/y", "b/x"])


def test_the_demonstration_is_a_configuration_like_any_other() -> None:
    config = demo_config(bootstrap="127.0.0.1:1", port=0)
    assert config.collections.keys() == COLLECTIONS.keys()
    for collection in config.collections.values():
        assert collection.window.size_ms == WINDOW_MS
        assert collection.spec.mechanism.certify().passed


def made_sent() -> SentReports:
    sent = SentReports(FEW, window_ms=1_000)
    sent.add(np.array([0, 0, 0, 1]), START_MS + 999)
    sent.add(np.array([2, 2]), START_MS + 1_000)
    sent.add(np.array([1, 1, 1, 1]), START_MS)
    return sent


def entry(place: str, low: float | None, share: float | None, high: float | None) -> ValueEstimate:
    return ValueEstimate(
        value=place, share=share, count=share, se=0.1, low=low, high=high, influence=0.1
    )


def document(start_ms: int, n: int, *entries: ValueEstimate) -> EstimateDocument:
    window = Window(start=format_time(start_ms), end=format_time(start_ms + 1_000))
    return EstimateDocument(
        collection="causes", fingerprint="00", window=window, n=n, final=True, withheld=False,
        confidence=0.95, distribution=list(entries),
    )  # fmt: skip


def status(counted: int, late: int, rejected: int) -> CollectionStatus:
    return CollectionStatus(
        collection="causes", fingerprint="00", ready=True, stopped=False, problems=[],
        counted=counted, late=late, rejected=rejected, lost_offsets=0, partitions=[],
    )  # fmt: skip


@pytest.fixture
def summary() -> DemoSummary:
    entries = (
        entry("a/x", 0.3, 0.4, 0.5),
        entry("a/y", 0.1, 0.2, 0.3),
        entry("b/x", -0.1, 0.0, 0.1),
    )
    documents = [document(START_MS, 8, *entries), document(START_MS + 1_000, 2)]
    return DemoSummary(name="causes", sent=made_sent(), status=status(9, 1, 0), documents=documents)


def printed(summary: DemoSummary) -> str:
    console = Console(file=io.StringIO(), width=160)
    print_summary([summary], console)
    return console.file.getvalue()


def test_a_good_summary_says_so(summary: DemoSummary) -> None:
    assert summary.good
    text = printed(summary)
    assert "accounted  counted + late + rejected = sent = 10" in text
    # 3/8 is inside [0.3, 0.5], 5/8 is not inside [0.1, 0.3], and 0 is inside [-0.1, 0.1].
    assert "2 of 3 true shares are inside their 95% bounds: 66.7%" in text
    assert "37.50%" in text


@pytest.mark.parametrize("decided", [(8, 1, 0), (10, 1, 0)])
def test_reports_that_are_not_accounted_for_are_flagged(
    summary: DemoSummary, decided: tuple[int, int, int]
) -> None:
    wrong = replace(summary, status=status(*decided))
    assert not wrong.good
    text = printed(wrong)
    assert (
        f"NOT ACCOUNTED: counted + late + rejected = {sum(decided)}, but 10 were sent to causes"
        in text
    )
    assert "accounted " not in text


def test_a_demonstration_without_reports_is_not_good(summary: DemoSummary) -> None:
    sent = SentReports(FEW, window_ms=1_000)
    empty = replace(summary, sent=sent, status=status(0, 0, 0), documents=[])
    assert not empty.good
    assert "no final window has enough reports" in printed(empty)


@pytest.mark.parametrize("shape", [(2,), (1_000,), (25, 40), (3, 1, 5)])
def test_values_are_in_the_domain_and_follow_from_the_seed(shape: tuple[int, ...]):
    values = Crowd(shape, seed=5).draw(2_000, seconds=10.0)
    assert values.dtype == np.int64
    assert values.shape == (2_000,)
    assert 0 <= values.min() <= values.max() < np.prod(shape)
    np.testing.assert_array_equal(values, Crowd(shape, seed=5).draw(2_000, seconds=10.0))
    assert len(Crowd(shape, seed=5).draw(0, seconds=10.0)) == 0


def test_the_crowd_wanders():
    crowd = Crowd((1_000,), seed=5)
    early, late = (np.median(crowd.draw(5_000, seconds=s)) for s in (0.0, PERIOD_SECONDS / 4))
    # The centre moves from 500 to 800; a median of 5,000 varies by a few.
    assert 200 < late - early < 320
