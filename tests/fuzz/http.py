"""Hostile calls to the HTTP API, made by schemathesis out of the description that a server serves.

`serve_city` is the server, in a process of its own; `fuzz` calls it and returns what was wrong.
"""

import asyncio
import copy
import logging
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from unittest import mock

import requests
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode, openapi
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ldpstream.agents.web import certificates
from tests.processes import PATIENCE_SECONDS
from tests.stream.http.test_http_fuzz import TABLES, count_reports
from tests.stream.serving import START_MS, serve, serve_collections

CHECKS: Final = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
_ROOT: Final = Path(__file__).resolve().parents[2]
_URL: Final = re.compile(r"ready (http://\S+)")
_LONG: Final = "/api/collections/{name}/estimate"
_STARTS: Final = [str(START_MS), "2026-11-21T10:01:00Z", "2026-11-21T10:00:30Z", "0", "-1"]
_RAW_SECONDS: Final = 0.1


@dataclass
class Found:
    """What came of the calls."""

    calls: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    stderr: str = ""
    rss_before_mb: float = 0.0
    rss_after_mb: float = 0.0

    @property
    def wrong(self) -> bool:
        """Whether anything but the memory was wrong."""
        return bool(self.failures or self.stderr or any(s >= 500 for s in self.statuses))


async def serve_city() -> None:
    """Serve every kind of collection until the standard input ends; print the URL."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    pipeline = serve_collections(TABLES)
    count_reports(pipeline)
    pipeline.collections["city"].close(START_MS + 60_000)
    with mock.patch.object(certificates, "LIMIT_SECONDS", PATIENCE_SECONDS):
        async with serve(pipeline) as url:
            print("ready", url, flush=True)
            await asyncio.to_thread(sys.stdin.read)


@contextmanager
def server() -> Iterator[tuple[str, int, Path]]:
    """Run the server; give its URL, its process id and the file of its standard error."""
    errors = Path(os.environ.get("TMPDIR", "/tmp")) / f"ldpstream-fuzz-{os.getpid()}.log"
    with errors.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.http"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=out,
            cwd=_ROOT,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        match = _URL.match(process.stdout.readline().decode())
        assert match is not None, errors.read_text()
        yield match[1], process.pid, errors
        process.stdin.close()
        process.wait(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        errors.unlink()


def fuzz(calls: int, *, number: int = 1) -> Found:
    """Make this many calls from a seed, half of them violating the description; check answers."""
    found = Found()
    with server() as (url, pid, errors), requests.Session() as session:
        schema = openapi.from_dict(_named(session.get(f"{url}/openapi.json").json()))
        operations = [one.ok() for one in schema.get_all_operations()]
        warm = calls // 10
        _call_all(operations, url, session, found, warm, number)
        found.rss_before_mb = rss_mb(pid)
        _call_all(operations, url, session, found, calls - warm, number + 1)
        _malformed(url, found, max(20, calls // 100), number)
        found.rss_after_mb = rss_mb(pid)
        assert session.get(f"{url}/healthz").json() == {"status": "ok"}
        found.stderr = errors.read_text()
    return found


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) / 1024


def _named(description: dict[str, Any]) -> dict[str, Any]:
    """Describe paths by names and times that exist, which the served description cannot know."""
    known = {"name": list(TABLES), "start": _STARTS}
    named = copy.deepcopy(description)
    for path in named["paths"].values():
        for operation in path.values():
            for parameter in operation["parameters"]:
                if parameter["in"] == "path":
                    parameter["schema"] = {"type": "string", "enum": known[parameter["name"]]}
                elif parameter["name"] in ("start", "end", "from", "to", "after"):
                    parameter["schema"] = {"anyOf": [{"enum": _STARTS}, {"type": "string"}]}
    return named


def _call_all(
    operations: list[Any],
    url: str,
    session: requests.Session,
    found: Found,
    calls: int,
    number: int,
) -> None:
    """Call the operations in turn, the estimates more often, until there were this many calls."""
    end = found.calls + calls
    share = max(1, calls // (2 * (len(operations) + 6)))
    while found.calls < end:
        for operation in operations:
            for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                often = 4 if operation.path == _LONG else 1
                most = min(share * often, end - found.calls)
                if most > 0:
                    number += 1
                    _call(operation, mode, url, session, found, most, number)


def _call(
    operation: Any,
    mode: GenerationMode,
    url: str,
    session: requests.Session,
    found: Found,
    most: int,
    number: int,
) -> None:
    @seed(number)
    @settings(
        max_examples=most,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def one(case: Any) -> None:
        found.calls += 1
        if operation.path.endswith("/events"):
            # `case.call` would read the stream, which has no end, until the time is up.
            asked = case.as_transport_kwargs(base_url=url)
            answer = session.request(**asked, timeout=PATIENCE_SECONDS, stream=True)
            if answer.status_code == 200:
                found.statuses[200] += 1
                answer.close()
                return
        else:
            answer = case.call(base_url=url, session=session, timeout=PATIENCE_SECONDS)
        found.statuses[answer.status_code] += 1
        try:
            case.validate_response(answer, checks=CHECKS)
        except FailureGroup as group:
            for failure in group.exceptions:
                found.failures[f"{operation.label}: {failure}"[:500]] += 1
        if "Traceback" in answer.text:
            found.failures[f"{operation.label}: a traceback in the answer"] += 1

    # An operation without parameters has no calls that violate its description.
    with suppress(Unsatisfiable):
        one()


def _malformed(url: str, found: Found, calls: int, number: int) -> None:
    """Send requests with wrong bytes in them, each on a connection of its own."""
    rng = random.Random(number)
    host, port = url.removeprefix("http://").split(":")
    right = f"GET /api/collections/city/estimate?top=1 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    for _ in range(calls):
        sent = bytearray(right)
        for _ in range(rng.randint(1, 8)):
            sent[rng.randrange(len(sent))] = rng.randrange(256)
        status = asyncio.run(_raw(host, int(port), bytes(sent)))
        found.calls += 1
        if status is not None:
            found.statuses[status] += 1


async def _raw(host: str, port: int, sent: bytes) -> int | None:
    """Return the status of the answer to some bytes, None where there is none."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(sent)
        writer.write_eof()
        async with asyncio.timeout(_RAW_SECONDS):
            line = await reader.readline()
    except (TimeoutError, ConnectionError):
        return None
    finally:
        writer.close()
    match = re.match(rb"HTTP/1\.[01] (\d{3}) ", line)
    return None if match is None else int(match[1])


if __name__ == "__main__":
    asyncio.run(serve_city())
