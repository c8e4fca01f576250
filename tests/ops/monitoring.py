"""A real Prometheus for tests, with this repository's rules at a fraction of their durations.

With LDPSTREAM_REQUIRE_ALL=1 a Prometheus that is missing fails the tests instead of skipping
them.
"""

import json
import re
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ldpstream.agents.broker.embedded import start_guarded
from tests import missing
from tests.brokers import wait_until
from tests.ports import free_ports
from tests.processes import PATIENCE_SECONDS, eventually

FOLDER = Path(__file__).resolve().parents[2] / "docker" / "prometheus"
RANGES = 60
"""Divides ranges of time: five minutes become five seconds."""
SLOW = {"LdpstreamWorkerDown", "LdpstreamNoWorker", "LdpstreamFlushSlow", "LdpstreamLag"}
"""Alerts that a busy machine may fire too: a slow scrape counts as down until the next."""
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}


def skip_without_prometheus() -> None:
    """Skip the calling test where Prometheus is missing, or fail it where it is required."""
    for tool in ("prometheus", "promtool"):
        missing.skip_without(tool, package="prometheus")


@dataclass(frozen=True)
class Prometheus:
    """A running server."""

    url: str

    def get(self, path: str, **parameters: str) -> Any:
        """Return the data of an answer of its API."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(
            f"{self.url}/api/v1/{path}?{query}", timeout=PATIENCE_SECONDS
        ) as answer:
            body = json.loads(answer.read())
        assert body["status"] == "success", body
        return body["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the samples of an instant query."""
        found: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return found

    def firing(self) -> set[tuple[str, str]]:
        """Return the alerts that fire, as (name, collection or instance)."""
        labels = [a["labels"] for a in self.get("alerts")["alerts"] if a["state"] == "firing"]
        return {
            (one["alertname"], one.get("collection") or one.get("instance", "")) for one in labels
        }

    def alerts(self) -> set[tuple[str, str]]:
        """Return the alerts that fire, but for `SLOW`."""
        return {one for one in self.firing() if one[0] not in SLOW}

    def answers(self, expression: str) -> bool:
        """Whether a query of a dashboard, with all its variables at "All", has an answer."""
        expression = expression.replace("$__rate_interval", "5s")
        for variable in ("collection", "share", "number"):
            expression = expression.replace(f"${variable}", ".+")
        return bool(self.query(expression.replace('=".+"', '=~".+"')))


def hurried(text: str, *, ranges: float, holds: float) -> str:
    """Return rules whose ranges of time and whose `for:` are divided by these."""

    def shorter(found: re.Match[str]) -> str:
        factor = ranges if found[1] == "[" else holds
        return f"{found[1]}{round(int(found[2]) * _UNIT_MS[found[3]] / factor)}ms"

    return re.sub(r"(\[|for: )(\d+)(ms|s|m|h)(?=[\]\n])", shorter, text)


async def until_alerts(server: Prometheus, expected: set[tuple[str, str]]) -> None:
    """Wait until these alerts fire and no other but those in `SLOW`; fail with those that do."""
    with suppress(AssertionError):
        await eventually(lambda: server.alerts() == expected)
    assert server.alerts() == expected


@contextmanager
def prometheus(
    folder: Path,
    *,
    targets: Mapping[str, Sequence[str]],
    token: Path,
    holds: float,
    ranges: float = RANGES,
) -> Iterator[Prometheus]:
    """Run a server with the shipped configuration in `folder`, in a hurry.

    `targets` are addresses by job; shipped jobs that are not among them are left out. An alert
    fires after the `holds`-th part of its `for:`, and looks back over the `ranges`-th part of its
    ranges. A scrape that takes more than a second counts as failed; with `ranges` = 60, a range of
    five minutes holds five scrapes.
    """
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "200ms"}
    shipped = {job["job_name"]: job for job in config["scrape_configs"]}
    config["scrape_configs"] = [
        {
            **shipped[name],
            "authorization": {"credentials_file": str(token)},
            "static_configs": [{"targets": list(addresses)}],
        }
        for name, addresses in targets.items()
    ]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    for name in config["rule_files"]:
        (folder / name).write_text(hurried((FOLDER / name).read_text(), ranges=ranges, holds=holds))
    port = free_ports(1)[0]
    server = Prometheus(f"http://127.0.0.1:{port}")
    command = [
        "prometheus",
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    guarded = start_guarded(command, environment={})
    try:
        wait_until(lambda: _ready(server), what="Prometheus")
        yield server
    finally:
        guarded.stop()


def _ready(server: Prometheus) -> bool:
    try:
        with urllib.request.urlopen(f"{server.url}/-/ready", timeout=1):
            return True
    except OSError:
        return False
