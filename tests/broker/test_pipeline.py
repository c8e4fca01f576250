"""From devices to finals through a real broker: each report has one outcome, counts are exact."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpstream.mechanisms import MECHANISMS
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.broker.asking import command, final
from tests.broker.conftest import on_one_broker
from tests.lab import START_MS, Lab
from tests.ledger import WINDOW_MS
from tests.processes import PATIENCE_SECONDS

pytestmark = pytest.mark.broker


async def test_counts_equal_the_ledger(lab: Lab) -> None:
    with lab.worker() as worker:
        async with lab.producer() as producer:
            for i in range(60):
                first_ms = START_MS + i // 20 * WINDOW_MS
                value = lab.frame(200, first_ms=first_ms, last_ms=first_ms + WINDOW_MS - 1)
                await producer.send(lab.collection.topics.source, value, partition=i % 4)
        await lab.close(START_MS + 3 * WINDOW_MS)
        await lab.check_exact()
        listed = worker.get("/api/collections/trips/windows?all=true")
        assert sum(window["n"] for window in listed["windows"]) == lab.ledger.n
        assert worker.terminate() == 0
        assert worker.errors() == ""


@on_one_broker
async def test_late_and_rejected_are_counted_and_copied(lab: Lab) -> None:
    spec = lab.collection.spec
    topics = lab.collection.topics
    other = CollectionSpec.from_mapping(
        "trips",
        {"mechanism": "block-hadamard", "epsilon": 2.0, "domain": {"size": 12}},
        base=lab.file.parent,
    )
    outputs = spec.mechanism.outputs
    good = lab.frame(10, first_ms=START_MS, last_ms=START_MS)
    wrong_range = bytearray(spec.frame_reports(np.zeros(1, int), times_ms=np.array([START_MS])))
    wrong_range[-1] = outputs
    later = START_MS + WINDOW_MS
    bad = {
        "undecodable": b"no frame",
        "fingerprint": other.frame([3], times_ms=np.array([START_MS])),
        "range": bytes(wrong_range),
        "future": spec.frame([3], times_ms=np.array([4_000_000_000_000])),
    }
    with lab.worker() as worker:
        async with lab.producer() as producer:
            for value in [good, *bad.values(), None]:
                await producer.send_and_wait(topics.source, value, partition=2, key=b"secret")
            await producer.send(
                topics.source, lab.frame(7, first_ms=later, last_ms=later), partition=2
            )
            late = spec.frame_reports(lab.reports(5), times_ms=np.full(5, START_MS))
            await producer.send_and_wait(topics.source, late, partition=2)
        await lab.close(START_MS + 2 * WINDOW_MS)
        await lab.check_exact()
        assert worker.terminate() == 0

    copies = await lab.records(topics.rejected)
    reasons = sorted(dict(copy.headers)["reason"].decode() for copy in copies)
    assert reasons == sorted([*bad, "undecodable"])
    for copy in copies:
        headers = dict(copy.headers)
        assert copy.key is None
        assert headers["partition"] == b"2"
        assert int(headers["offset"]) in range(1, 6)
    (copy,) = await lab.records(topics.late)
    assert dict(copy.headers) == {"reason": b"late", "partition": b"2", "offset": b"7"}
    assert copy.value == late
    (final,) = (await lab.finals())[START_MS + WINDOW_MS]
    assert final["rejected"] == 5


@on_one_broker
async def test_provisional_and_final_have_different_keys_and_the_published_queries(
    lab: Lab,
) -> None:
    blocks = [value // 4 for value in range(12)]
    lab = lab.changed("means.toml", ("top = 12", f"top = 12, linear = {{ block = {blocks} }}"))
    with lab.worker() as worker:
        async with lab.producer() as producer:
            value = lab.frame(50, first_ms=START_MS, last_ms=START_MS)
            await producer.send_and_wait(lab.collection.topics.source, value, partition=1)
        keys: dict[bytes, dict[str, Any]] = {}
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not keys:
                await asyncio.sleep(0.2)
                records = await lab.records(lab.collection.topics.estimates)
                keys = {record.key or b"": json.loads(record.value or b"") for record in records}
        ((key, document),) = keys.items()
        assert key.endswith(b"/provisional")
        assert not document["final"]
        assert document["n"] == 50
        # The block is disclosed, so its mean is exact.
        decoder = lab.collection.spec.mechanism.decoder
        counts = decoder.group_reports(lab.ledger.windows[START_MS])
        (mean,) = document["linear"]
        assert (mean["name"], mean["low"], mean["high"]) == ("block", mean["mean"], mean["mean"])
        assert mean["total"] == pytest.approx(counts @ np.arange(3))
        await lab.close(START_MS + WINDOW_MS)
        await lab.check_exact()
        records = await lab.records(lab.collection.topics.estimates)
        assert {record.key for record in records} == {
            key,
            key.replace(b"provisional", b"final"),
        }
        (final,) = (await lab.finals())[START_MS]
        assert final["linear"] == [mean]
        assert worker.metrics("ldpstream_estimate", query="linear:block") == mean["mean"]


CHANNEL = Path(__file__).parents[1] / "vectors" / "channels" / "line.json"
LINE = "domain = { size = 6 }"
LABELS = 'domain = { values = ["no", "yes"] }'
RECORDS = (
    'domain = { attributes = { line = { size = 6, mechanism = "tree", epsilon = 1.0 }, '
    'answer = { values = ["no", "yes"], mechanism = "binary", epsilon = [1.0, 2.0] } } }'
)
PUBLISHED = (
    'epsilon = 1.0\nworkload = "published"\n'
    "publish = { ranges = { first = [0, 341], middle = [170, 682], last = [512, 1023] } }"
)
ORDERED = ("--range", "2..4", "--quantile", "0.5")
TABLES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "binary": ("epsilon = [1.0, 2.0]", LABELS, ()),
    "high-low": ("epsilon = 1.0\nsensitive = [1, 2]", LINE, ORDERED),
    "groups": ("epsilon = 1.0\nsensitive = [1, 2, 4, 5]", LINE, ORDERED),
    "block-hadamard": (
        "epsilon = 1.0",
        "domain = { size = 6, blocks = 4 }",
        (*ORDERED, "--method", "bernstein"),
    ),
    "randomized-response": ("epsilon = 1.0", "domain = { size = 6, blocks = 4 }", ORDERED),
    "projective-geometry": ("epsilon = 1.0", "domain = { size = 6, blocks = 4 }", ORDERED),
    "subset-selection": ("epsilon = 1.0", "domain = { size = 6, blocks = 4 }", ORDERED),
    "l1-bits": ("epsilon = 1.0", LINE, ORDERED),
    "l1-geometric": ("epsilon = 1.0\nweights = { private = 3 }", LINE, ORDERED),
    "lip": ("epsilon = 1.0\nprior = 0.3", LABELS, ()),
    "optimal": (f'channel = "{CHANNEL}"', LINE, ORDERED),
    "sampled": (
        "",
        RECORDS,
        ("--attribute", "line", *ORDERED),
    ),
    "tree": ("epsilon = 1.0", "domain = { size = 6, blocks = 4 }", ORDERED),
    "matrix": ('epsilon = 1.0\nstrategy = "prefix"', LINE, ORDERED),
    "priors": ("epsilon = [0.5, 2.0]\nprior = { levels = 64 }", LABELS, ()),
    "atoms": (PUBLISHED, "domain = { size = 1024 }", ("--range", "170..511")),
}
VARIANTS = {"priors": "lip", "atoms": "subset-selection"}
"""Collections of a mechanism that has another one already."""
N = 900


def values_of(mechanism: str, rng: np.random.Generator) -> list[str]:
    if TABLES[mechanism][1] == LABELS:
        answers = rng.choice(["no", "yes"], N, p=[0.7, 0.3]).tolist()
        # Each device knows its prior, and chooses its budget.
        return [f"{one},0.3,2" for one in answers] if mechanism == "priors" else answers
    lines = [str(value) for value in rng.integers(0, 1_024 if mechanism == "atoms" else 6, N)]
    if mechanism == "sampled":
        return [f"{line},{answer}" for line, answer in zip(lines, ["no", "yes"] * N, strict=False)]
    if "weights" in TABLES[mechanism][0]:
        weights = rng.integers(0, 4, N).tolist()
        return [f"{line},{weight}" for line, weight in zip(lines, weights, strict=True)]
    return lines


def test_there_is_a_collection_for_every_mechanism():
    assert {VARIANTS.get(name, name) for name in TABLES} == set(MECHANISMS)


@on_one_broker
def test_every_mechanism_from_values_to_the_same_document(lab: Lab, tmp_path: Path):
    rng = np.random.default_rng(8)
    with lab.file.open("a") as file:
        for mechanism, (keys, domain, _) in TABLES.items():
            file.write(
                f"\n[collection.{mechanism}]\n{keys}\n{domain}\n"
                f'mechanism = "{VARIANTS.get(mechanism, mechanism)}"\n'
                f'topic = "{mechanism}-{lab.collection.topics.source}"\npartitions = 2\n'
                'precision = "1ms"\nminimum = 1\n'
                'window = { size = "10s", grace = "0s", idle = "off" }\n'
            )
    here = {}
    for mechanism, (_, _, options) in TABLES.items():
        times = START_MS + rng.integers(0, WINDOW_MS, N)
        lines = zip(times.tolist(), values_of(mechanism, rng), strict=True)
        values, reports = tmp_path / f"{mechanism}.csv", tmp_path / f"{mechanism}.jsonl"
        header = "time,line,answer\n" if mechanism == "sampled" else ""
        values.write_text(header + "".join(f"{when},{value}\n" for when, value in lines))
        reports.write_text(
            command("privatize", "-c", lab.file, mechanism, values, "--times", "--replay")
        )
        asked = ("--top", "all", *options)
        here[mechanism] = json.loads(
            command("estimate", "--json", "-c", lab.file, mechanism, reports, *asked)
        )
    with lab.worker() as worker:
        for mechanism in TABLES:
            reports = tmp_path / f"{mechanism}.jsonl"
            command(
                "send", "-c", lab.file, mechanism, reports, "--reports", "--replay", "--batch", "20"
            )
            command("close", "-c", lab.file, mechanism, "--until", str(START_MS + WINDOW_MS))
        for mechanism, (_, _, options) in TABLES.items():
            there = final(worker.url, mechanism, "--top", "all", *options)
            expected = {**here[mechanism], "window": there["window"], "size": "10s", "final": True}
            assert there.get("of", there["n"]) == N
            assert there["distribution"]
            assert there == expected
