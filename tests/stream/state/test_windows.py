"""Windows, panes and pointers: the arithmetic against plain definitions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpstream.agents.state.windows import NEVER, WindowSpec

NUMBERS = st.integers(-(10**13), 10**13)


@st.composite
def window_specs(draw: st.DrawFn) -> WindowSpec:
    size_ms = draw(st.integers(1, 200))
    return WindowSpec(
        size_ms=size_ms,
        hop_ms=draw(st.integers(1, size_ms)),
        grace_ms=draw(st.integers(0, 50)),
        retention_ms=draw(st.integers(0, 500)),
    )


@given(window_specs(), NUMBERS)
def test_a_pane_is_in_exactly_the_windows_that_hold_it(window: WindowSpec, pane: int):
    holding = window.windows(pane)
    assert len(holding) >= 1
    assert all(pane in window.panes(number) for number in holding)
    assert pane not in window.panes(holding.start - 1)
    assert pane not in window.panes(holding.stop)


@given(window_specs(), NUMBERS)
def test_a_window_is_a_whole_number_of_panes(window: WindowSpec, number: int):
    start_ms, end_ms = window.span(number)
    panes = window.panes(number)
    assert (start_ms, end_ms) == (panes.start * window.pane_ms, panes.stop * window.pane_ms)
    assert window.first_pane(number) == window.pane(start_ms) == panes.start
    assert window.pane(end_ms - 1) == panes.stop - 1
    assert window.size_ms % window.pane_ms == window.hop_ms % window.pane_ms == 0


@given(window_specs(), NUMBERS)
def test_a_clock_closes_the_panes_that_ended_a_grace_ago(window: WindowSpec, clock_ms: int):
    closed = window.closed(clock_ms)
    assert closed * window.pane_ms + window.grace_ms <= clock_ms
    assert (closed + 1) * window.pane_ms + window.grace_ms > clock_ms
    expired = window.expired(clock_ms)
    assert expired * window.pane_ms + window.grace_ms + window.retention_ms <= clock_ms


@given(window_specs(), NUMBERS)
def test_windows_are_final_when_all_their_panes_are_closed(window: WindowSpec, closed: int):
    final = window.final(closed)
    assert window.panes(final - 1)[-1] < closed
    assert window.panes(final)[-1] >= closed
    assert window.closing(final) == window.panes(final - 1)[-1] + 1 <= closed


def test_never_stays_never():
    window = WindowSpec(size_ms=7, hop_ms=3, grace_ms=2)
    assert window.closed(NEVER) == window.expired(NEVER) == window.final(NEVER) == NEVER
    assert window.closing(NEVER) == window.first_pane(NEVER) == NEVER


@pytest.mark.parametrize(
    "wrong", [{"hop_ms": 0}, {"hop_ms": 9}, {"grace_ms": -1}, {"idle_ms": -1}, {"future_ms": -1}]
)
def test_impossible_windows_are_refused(wrong: dict[str, int]):
    with pytest.raises(ValueError, match="expected"):
        WindowSpec(**{"size_ms": 8, "hop_ms": 4} | wrong)
