"""The containers of docker/compose.yaml at work: counted exactly, scraped, stopped in time.

python3 tests/ops/containers.py docker

`docker/containers.sh test` runs it once all are healthy, in the network and process namespaces of
their engine, with DOCKER_HOST set. It needs the standard library alone, and leaves them stopped.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

Found = TypeVar("Found")

PATIENCE_SECONDS: Final = 300
DEVICES: Final = ("checkins", "commutes")
"""Services that send to the collections of the same names."""
OWN: Final = (*DEVICES, "gateway", "worker-1", "worker-2")
WORKERS: Final = ("worker-1", "worker-2")
PROJECT: Final = "com.docker.compose.project"
UPLOADS: Final = 50
UPLOAD: Final = f"""
import secrets, time, urllib.request
from ldpstream.agents.config import load_config
spec = load_config("/etc/ldpstream/ldpstream.toml").collections["checkins"].spec
for _ in range({UPLOADS}):
    frame = spec.frame([[0, 0]], times_ms=[time.time_ns() // 1_000_000_000 * 1000])
    headers = {{"Content-Type": "application/vnd.ldpstream.frame"}}
    headers["Idempotency-Key"] = secrets.token_hex(16)
    url = "http://gateway:8080/v1/collections/checkins/reports"
    urllib.request.urlopen(urllib.request.Request(url, data=frame, headers=headers), timeout=30)
"""
"""What a container runs to upload single reports; any answer but a success ends it."""


def docker(*arguments: str) -> str:
    """Return what a command of the engine prints."""
    command = ["/usr/bin/docker", *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def compose(*arguments: str) -> None:
    """Run a command of docker-compose on the stack, whose file is next to the engine."""
    folder = Path(os.environ["DOCKER_HOST"].removeprefix("unix://")).parents[1]
    docker_folder = Path(__file__).resolve().parents[2] / "docker"
    command = ["docker-compose", "-p", inspect("kafka")["Config"]["Labels"][PROJECT]]
    command += ["--project-directory", str(docker_folder), "-f", str(folder / "compose.yaml")]
    subprocess.run([*command, *arguments], check=True, capture_output=True)


def container(service: str) -> str:
    """Return the one container of a service."""
    label = f"label=com.docker.compose.service={service}"
    (found,) = docker("ps", "-aq", "--filter", label).split()
    return found


def inspect(service: str) -> dict[str, Any]:
    """Return what the engine knows of a service's container."""
    (found,) = json.loads(docker("inspect", container(service)))
    return dict(found)


def get(url: str, token: str | None = None) -> Any:
    """Return the JSON at an address."""
    request = urllib.request.Request(url)
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def eventually(what: str, ask: Callable[[], Found | None]) -> Found:
    """Ask until the answer is true; an address that does not answer counts as no.

    Raises:
        SystemExit: after PATIENCE_SECONDS, with the last answer.
    """
    end = time.monotonic() + PATIENCE_SECONDS
    last: object = None
    while time.monotonic() < end:
        try:
            if last := ask():
                return last
        except (OSError, urllib.error.URLError) as error:
            last = error
        time.sleep(0.5)
    raise SystemExit(f"containers: failed: {what} did not happen in {PATIENCE_SECONDS} s: {last}")


class Workers:
    """The HTTP API of the workers, by their ports."""

    def __init__(self, token: str) -> None:
        self._token = token

    def status(self, name: str, port: int = 6067) -> dict[str, Any]:
        return dict(get(f"http://127.0.0.1:{port}/api/collections/{name}/status", self._token))

    def windows(self, name: str, port: int = 6067) -> list[dict[str, Any]]:
        path = f"/api/collections/{name}/windows?last=10000"
        return list(get(f"http://127.0.0.1:{port}{path}", self._token)["windows"])

    def accounted(self, name: str, port: int = 6067) -> int:
        found = self.status(name, port)
        return int(found["counted"] + found["late"] + found["rejected"])


def scrape() -> str:
    """Wait until Prometheus scrapes everything; returns the figure."""

    def query(text: str) -> list[Any]:
        asked = urllib.parse.urlencode({"query": text})
        return list(get(f"http://127.0.0.1:9090/api/v1/query?{asked}")["data"]["result"])

    up = eventually(
        "a scrape of all", lambda: [query("up == 1")] if len(query("up == 1")) == 3 else None
    )
    counted = 'sum by (collection) (ldpstream_reports_total{result="counted"}) > 1000'
    eventually("counts in Prometheus", lambda: len(query(counted)) == len(DEVICES))
    return f"{len(up[0])} targets up"


def kill(workers: Workers) -> str:
    """Kill the process of worker 1, as the kernel does when memory is short; returns the figure."""
    before = {name: workers.status(name)["counted"] for name in DEVICES}
    state = inspect("worker-1")
    os.kill(state["State"]["Pid"], signal.SIGKILL)
    begun = time.monotonic()

    def back() -> bool:
        now = inspect("worker-1")
        again = now["RestartCount"] > state["RestartCount"]
        return bool(again and now["State"]["Health"]["Status"] == "healthy")

    eventually("worker 1 healthy again", back)
    seconds = time.monotonic() - begun
    _count_more(workers, before)
    return f"healthy again after {seconds:.0f} s"


def _count_more(workers: Workers, before: Mapping[str, int]) -> None:
    """Wait until more reports of every device have been counted than `before`."""
    for name in DEVICES:
        eventually(
            f"{name} counts more", lambda name=name: workers.status(name)["counted"] > before[name]
        )


def upgrade(workers: Workers) -> str:
    """Put another image in the place of the workers', and recreate one after another with it.

    Their volumes and partitions are kept; returns the figure.
    """
    before = {name: workers.status(name)["counted"] for name in DEVICES}
    image = inspect(WORKERS[0])["Config"]["Image"]
    text = f"FROM {image}\nLABEL release=next\n"
    command = ["/usr/bin/docker", "build", "-t", image, "-"]
    subprocess.run(command, check=True, capture_output=True, text=True, input=text)
    begun = time.monotonic()
    for worker in WORKERS:
        compose("up", "-d", "--no-deps", "--no-build", worker)

        def upgraded(worker: str = worker) -> bool:
            now = inspect(worker)
            labels = now["Config"]["Labels"]
            return bool(labels.get("release") and now["State"]["Health"]["Status"] == "healthy")

        eventually(f"{worker} healthy with another image", upgraded)
    seconds = time.monotonic() - begun
    _count_more(workers, before)
    return f"both workers healthy with another image after {seconds:.0f} s"


def count(workers: Workers) -> str:
    """Stop the devices, and compare what brokers acknowledged with what is counted."""
    docker("exec", container("worker-2"), "python", "-c", UPLOAD)
    docker("stop", *(container(name) for name in DEVICES))
    figures = []
    for name in DEVICES:
        printed = docker("logs", container(name))
        sent = sum(
            int(n.replace(",", ""))
            for n in re.findall(r"^([\d,]+) reports? ack", printed, re.MULTILINE)
        )
        sent += UPLOADS if name == "checkins" else 0
        for port in (6066, 6067):
            eventually(
                f"all {sent} reports of {name} accounted for by port {port}",
                lambda name=name, port=port, sent=sent: workers.accounted(name, port) >= sent,
            )
            found = workers.status(name, port)
            if workers.accounted(name, port) != sent or found["rejected"]:
                raise SystemExit(f"containers: failed: {name}: {sent} sent, but {found}")
        figures.append(
            f"{name} {sent:,} sent, {found['counted']:,} counted, {found['late']:,} late"
        )
    # Its windows do not overlap, so each report is in one of them.
    eventually(
        "finals of commutes", lambda: all(one["published"] for one in workers.windows("commutes"))
    )
    finals, counted = workers.windows("commutes"), workers.status("commutes")["counted"]
    if sum(one["n"] for one in finals) != counted:
        raise SystemExit(f"containers: failed: finals of {counted} commutes are {finals}")
    return "; ".join([*figures, f"{len(finals)} finals of commutes hold all"])


def rights() -> str:
    """Check that a worker is its own user and can write nothing."""
    write = "touch $f 2> /dev/null && echo yes || echo no"
    write = f"for f in /var/lib/ldpstream/x /opt/x; do {write}; done"
    found = docker("exec", container("worker-1"), "sh", "-c", f"id -u; id -g; {write}").split()
    if found != ["10001", "10001", "no", "no"]:
        raise SystemExit(f"containers: failed: rights of a worker: {found}")
    return "user and group 10001, nothing writable"


def stop() -> str:
    """Stop everything, each within its own grace period; returns the figure."""
    begun = time.monotonic()
    docker("stop", *(container(name) for name in ("gateway", "worker-1", "worker-2", "prometheus")))
    own = time.monotonic() - begun
    docker("stop", container("kafka"))
    for name in (*OWN, "prometheus", "kafka"):
        state = inspect(name)["State"]
        # Java ends with 128 + SIGTERM; 137 is the code of what the engine had to kill.
        if state["ExitCode"] not in ({0, 143} if name == "kafka" else {0}) or state["OOMKilled"]:
            print(docker("logs", "--tail", "40", container(name)))
            raise SystemExit(f"containers: failed: {name} ended with {state['ExitCode']}")
    return f"own containers {own:.1f} s, all {time.monotonic() - begun:.1f} s, exit codes 0"


def main(folder: str) -> None:
    workers = Workers((Path(folder) / "secrets" / "read-token").read_text().strip())
    for what, step in (
        ("scraped", scrape),
        ("rights", rights),
        ("killed", lambda: kill(workers)),
        ("upgraded", lambda: upgrade(workers)),
        ("counted", lambda: count(workers)),
        ("stopped", stop),
    ):
        print(f"containers: {what}: {step()}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
