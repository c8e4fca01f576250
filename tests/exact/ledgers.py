"""What the tests of the ledger share: a collection, its times, and how a ledger is opened."""

from pathlib import Path

from ldpstream.mechanisms import CollectionSpec
from ldpstream.mechanisms.ledger import Ledger, Release
from tests.exact.wire.test_vectors import spec_of

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
START_MS = 20_000 * DAY_MS
MODES = ["bus", "train", "walk"]


def spec(name: str = "modes", epsilon: float = 0.1, extra: str = "") -> CollectionSpec:
    mechanism = "high-low" if "sensitive" in extra else "randomized-response"
    return spec_of(
        {
            "toml": f'[collection.{name}]\nmechanism = "{mechanism}"\nepsilon = {epsilon}\n'
            f'domain = {{ values = ["bus", "train", "walk"] }}\nprecision = "1m"\n{extra}'
        }
    )


def open_ledger(folder: Path, *specs: CollectionSpec, **options: object) -> Ledger:
    chosen = {"budget": 0.3, "horizon_ms": DAY_MS, **options}
    listed = [(one, HOUR_MS) for one in specs or (spec(),)]
    return Ledger(folder / "ledger", specs=listed, **chosen)


def content(release: Release) -> tuple[bytes, int]:
    return release.payload.tobytes(), release.time_ms
