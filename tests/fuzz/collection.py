"""What a fuzz needs to know of a collection: its rules, and how its good reports look."""

import random

import numpy as np

from ldpstream.agents.state.windows import WindowSpec
from ldpstream.mechanisms.wire.spec import CollectionSpec
from tests.fuzz.expected import Rules
from tests.fuzz.messages import Fuzzer
from tests.fuzz.reports import possible_reports
from tests.seeded import SeededEntropy

SPREAD_MS = 200


def rules_of(spec: CollectionSpec, window: WindowSpec) -> Rules:
    return Rules(
        fingerprint=spec.fingerprint,
        report_bytes=spec.mechanism.report_bytes,
        possible=possible_reports(spec.mechanism),
        precision_ms=spec.precision_ms,
        size_ms=window.size_ms,
        pane_ms=window.pane_ms,
        grace_ms=window.grace_ms,
        future_ms=window.future_ms,
    )


def fuzzer_of(spec: CollectionSpec, rng: random.Random, *, now_ms: int) -> Fuzzer:
    mechanism = spec.mechanism
    drawn = mechanism.privatize(np.arange(200) % mechanism.size, entropy=SeededEntropy(1))
    good = [bytes(row) for row in mechanism.encode(drawn)]
    return Fuzzer(
        fingerprint=spec.fingerprint,
        report_bytes=mechanism.report_bytes,
        good=lambda draw: draw.choice(good),
        now_ms=now_ms,
        spread_ms=SPREAD_MS,
        precision_ms=spec.precision_ms,
        rng=rng,
    )
