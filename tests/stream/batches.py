"""Strategies for batches of messages as any sender may write them, with reports of 1 or 2 bytes."""

from dataclasses import replace

from hypothesis import strategies as st

from ldpstream.agents.state.context import Context
from ldpstream.agents.state.windows import WindowSpec
from tests.stream.harness import frame, make_context, make_spec

NOW_MS = 1_270_000_000_000
WINDOW = WindowSpec(size_ms=40, hop_ms=20, grace_ms=10, future_ms=10)
WIDE = make_spec(size=300, precision="2ms")
OLD = make_spec(name="old")
TIMES = st.one_of(
    st.integers(NOW_MS - 100, NOW_MS + 15),
    st.integers(NOW_MS - 100, NOW_MS + 15),
    st.sampled_from([-(1 << 63), -(1 << 62), (1 << 63) - 1, 0]),
)


def contexts() -> list[Context]:
    narrow = make_context(WINDOW, accept=(OLD,), chunk=1)
    wide = make_context(WINDOW, spec=WIDE, accept=(OLD,), chunk=100)
    several = make_context(replace(WINDOW, witnesses=3), accept=(OLD,), chunk=1)
    return [narrow, wide, several]


@st.composite
def runs_out_of_order(draw: st.DrawFn, context: Context) -> bytes:
    """A frame as other senders may write it: runs in any order, times repeated."""
    width = context.spec.mechanism.report_bytes
    runs = draw(st.lists(st.tuples(TIMES, st.integers(1, 3)), min_size=1, max_size=4))
    reports = sum(count for _, count in runs)
    head = b"\x01\x00" + len(runs).to_bytes(2, "little") + context.spec.fingerprint
    table = b"".join(
        t.to_bytes(8, "little", signed=True) + c.to_bytes(4, "little") for t, c in runs
    )
    return head + table + draw(st.binary(min_size=width * reports, max_size=width * reports))


@st.composite
def messages(draw: st.DrawFn, context: Context) -> bytes | None:
    symbol = st.integers(0, context.spec.mechanism.outputs)
    reports = st.lists(st.tuples(TIMES, symbol), min_size=1, max_size=4)
    kind = draw(st.integers(0, 9))
    if kind < 6:
        return frame(*draw(reports), spec=context.spec)
    if kind < 8:
        return draw(runs_out_of_order(context))
    good = frame(*draw(reports), spec=draw(st.sampled_from([context.spec, OLD, make_spec(3)])))
    cut = draw(st.integers(0, len(good)))
    return draw(
        st.sampled_from([None, good, good[:cut], good + b"\0", draw(st.binary(max_size=40))])
    )


@st.composite
def sources(draw: st.DrawFn) -> tuple[Context, list[list[bytes | None]]]:
    context = draw(st.sampled_from(contexts()))
    batch = st.lists(messages(context), min_size=1, max_size=12)
    return context, draw(st.lists(batch, min_size=1, max_size=4))
