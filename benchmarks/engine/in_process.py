"""Aggregation in process: our library, pure-LDP and multi-freq-ldpy.

Randomised response over k values at one epsilon: all three are given the same reports. Of the
peers' other protocols, each on reports that its own client made: Hadamard response, compared with
ours (one block), and optimised unary encoding, which we do not offer.
"""

import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.seeded import SeededEntropy

from ldpstream.mechanisms.wire.spec import CollectionSpec

VALUES, EPSILON = 1_000, 1.0
_PEERS = Path(__file__).with_name("ldp_peers.py")
_PEER_SECONDS = 300.0
_BATCH = 100_000


@dataclass(frozen=True)
class Aggregated:
    """What one library used for this many reports, estimate included."""

    library: str
    protocol: str
    reports: int
    cpu_seconds: float

    @property
    def a_second(self) -> float:
        """Reports a second of processor time."""
        return self.reports / self.cpu_seconds


def measure(ldp_python: str, *, reports: int, peer_reports: int) -> list[Aggregated]:
    """Return the cost of every library; the peers are far slower and are given fewer reports."""
    found, given = [], np.empty(0, dtype=np.int64)
    for protocol in ("randomized-response", "projective-geometry", "subset-selection"):
        domain = {"size": VALUES}
        mapping = {"mechanism": protocol, "epsilon": EPSILON, "domain": domain}
        mechanism = CollectionSpec.from_mapping("bench", mapping, base=Path()).mechanism
        values = np.random.default_rng(1).integers(0, VALUES, reports)
        symbols = mechanism.privatize(values, entropy=SeededEntropy(1))
        if protocol == "randomized-response":
            given = symbols
        payload = mechanism.encode(symbols)
        begun, statistic = time.process_time(), mechanism.empty()
        for at in range(0, reports, _BATCH):
            decoded, good = mechanism.decode(payload[at : at + _BATCH])
            mechanism.accumulate(statistic, decoded[good])
        mechanism.decoder.totals(statistic)
        took = time.process_time() - begun
        found.append(Aggregated("ldpstream", protocol, reports, took))
    return found + (_peers(ldp_python, given[:peer_reports]) if ldp_python else [])


def _peers(python: str, given: NDArray[np.int64]) -> list[Aggregated]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "reports.npy"
        np.save(file, given)
        command = [python, str(_PEERS), str(file), str(VALUES), str(EPSILON)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_PEER_SECONDS)
    if ended.returncode:
        raise RuntimeError(f"{python}: {ended.stderr[-500:]}")
    return [Aggregated(*json.loads(line)) for line in ended.stdout.splitlines()]
