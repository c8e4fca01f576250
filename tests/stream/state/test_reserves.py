"""Reserves keep the first batches' reports about each attribute, whatever they say."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.agents.state.records import RecordError
from ldpstream.agents.state.reserves import Reserves, decode_reserve
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.seeded import SeededEntropy
from tests.stream.harness import make_spec

MINIMUM = 7


def records_spec() -> CollectionSpec:
    mapping: dict[str, Any] = {
        "mechanism": "randomized-response",
        "epsilon": 1.0,
        "domain": {
            "attributes": {
                "a": {"size": 3, "probability": 0.05},
                "b": {"size": 300, "probability": 0.15},
                "c": {"size": 9, "probability": 0.8},
            }
        },
    }
    return CollectionSpec.from_mapping("records", mapping, base=Path())


@pytest.mark.parametrize("spec", [make_spec(20), records_spec()], ids=["values", "records"])
@pytest.mark.parametrize("seed", range(5))
def test_a_reserve_has_the_first_reports_about_each_attribute(spec: CollectionSpec, seed: int):
    mechanism, rng = spec.mechanism, np.random.default_rng(seed)
    values = rng.integers(0, mechanism.size, 400)
    reports = mechanism.privatize(values, entropy=SeededEntropy(seed))
    reserves = Reserves(mechanism, MINIMUM)
    reserves._chunk = 4
    stored: dict[int, bytes] = {}
    before: list[tuple[int, ...]] = []
    taken = np.zeros(len(mechanism.slices), dtype=np.int64)
    for batch in np.split(reports, np.sort(rng.integers(0, 400, 60))):
        for number in reserves.add(5, batch):
            stored[number] = reserves.value(5, number)
        counted = np.bincount(mechanism.attributes_of(batch), minlength=len(taken))
        taken = np.minimum(taken + counted, MINIMUM)
        rows = [tuple(row) for row in decode_reserve(mechanism, stored).tolist()]
        # What was reserved stays, in its order; more of it is of this batch.
        assert rows[: len(before)] == before
        assert Counter(rows[len(before) :]) <= Counter(map(tuple, mechanism.encode(batch).tolist()))
        kept = mechanism.attributes_of(mechanism.decode(decode_reserve(mechanism, stored))[0])
        assert np.bincount(kept, minlength=len(taken)).tolist() == taken.tolist()
        before = rows
        if rng.random() < 0.3 and stored:
            # A new owner continues with what is stored.
            reserves = Reserves(mechanism, MINIMUM)
            reserves._chunk = 4
            reserves.load(5, stored)
    assert taken.max() == MINIMUM


@pytest.mark.parametrize("spec", [make_spec(4), records_spec()], ids=["values", "records"])
def test_a_reserve_of_a_sorted_frame_is_no_sample_of_its_beginning(spec: CollectionSpec):
    """Reports of a frame are sorted, so its first are alike: without them shares would be wrong."""
    mechanism, rng = spec.mechanism, np.random.default_rng(1)
    reports = mechanism.privatize(rng.integers(0, mechanism.size, 4000), entropy=SeededEntropy(1))
    rows = mechanism.encode(reports)
    frame = mechanism.decode(rows[np.lexsort(rows.T[::-1])])[0]
    reserves = Reserves(mechanism, 200)
    stored = {number: reserves.value(5, number) for number in reserves.add(5, frame)}
    kept = mechanism.decode(decode_reserve(mechanism, stored))[0]
    # The mean rank of 200 (of records, of the least frequent attribute) of those about it: seven
    # standard errors, by Hoeffding's bound exceeded with probability below 1e-12.
    for attribute in range(len(mechanism.slices)):
        places = np.flatnonzero(mechanism.attributes_of(frame) == attribute)
        of = mechanism.encode(frame[places])
        ranks = {tuple(row): rank for rank, row in enumerate(of.tolist())}
        chosen = mechanism.encode(kept[mechanism.attributes_of(kept) == attribute]).tolist()
        first = np.mean([ranks[tuple(row)] for row in of.tolist()])
        mean = np.mean([ranks[tuple(row)] for row in chosen])
        assert abs(mean - first) < 7 * len(of) / np.sqrt(12 * len(chosen))


def test_a_reserve_is_dropped_with_its_pane_and_begins_again():
    mechanism = make_spec(20).mechanism
    reports = mechanism.privatize(np.arange(10), entropy=SeededEntropy(1))
    reserves = Reserves(mechanism, MINIMUM)
    assert reserves.add(5, reports) == range(1)
    assert reserves.add(5, reports) == range(0)
    reserves.drop(5)
    reserves.drop(5)
    assert reserves.add(5, reports[:2]) == range(1)
    assert len(reserves.value(5, 0)) == 1 + 2 * mechanism.report_bytes


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ({0: b"\x01\x05", 2: b"\x01\x05"}, "have a gap"),
        ({0: b"\x01"}, "wrong length"),
        ({0: b"\x09\x05"}, "format version 9"),
    ],
)
def test_a_reserve_that_no_owner_has_written_is_refused(stored: dict[int, bytes], said: str):
    with pytest.raises(RecordError, match=said):
        decode_reserve(make_spec(20).mechanism, stored)
