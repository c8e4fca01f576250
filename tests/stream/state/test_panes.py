"""The index of names by pane: few or many names, in order, dropped with their pane."""

import random

from ldpstream.agents.state.windows import NEVER, Firsts, Name, PaneIndex, WindowSpec

# Two panes a window, and a window begins at every pane.
WINDOW = WindowSpec(size_ms=2, hop_ms=1)


def test_names_come_back_in_the_order_in_which_they_were_added() -> None:
    rng = random.Random(7)
    for chunks in (1, 3, 7, 8, 9, 40):
        index, expected = PaneIndex(WINDOW), dict[int, dict[Name, None]]()
        for _ in range(60 * chunks):
            pane = rng.randrange(4)
            name = rng.choice([Name("count", pane, rng.randrange(chunks)), Name("final", pane)])
            if rng.random() < 0.3:
                index.discard(name)
                expected.get(pane, {}).pop(name, None)
            else:
                index.add(name)
                expected.setdefault(pane, {})[name] = None
            for kind in ("count", "final"):
                names = [name for name in expected.get(pane, ()) if name.kind == kind]
                assert index.names(pane, kind) == names
        assert index.between(NEVER, -NEVER, "n", "late") == sorted(expected)
        gone = [name for pane in sorted(expected) if pane < 3 for name in expected[pane]]
        assert index.pop_gone(Firsts(kept=3)) == gone
        kept = [name for name in expected[3] if name.kind == "count"]
        assert index.names(3, "count") == kept
        assert not index.names(2, "count")


def test_a_final_belongs_to_its_first_pane() -> None:
    index = PaneIndex(WindowSpec(size_ms=6, hop_ms=4))
    index.add(Name("final", 3))
    assert index.between(0, 100, "n") == [6]
