"""Requests that a page of another site makes somebody's browser send, to a worker and a gateway."""

import asyncio
from typing import Final

from tests.attack.stand import Attack, Outcome, Stand
from tests.processes import PATIENCE_SECONDS, Worker

_COLLECTION: Final = """mechanism = "randomized-response"
epsilon = 1.0
domain = { size = 3 }
partitions = 1
minimum = 1
window = { size = "1h" }"""
_GATEWAY: Final = '\n[gateway]\nhttp = "127.0.0.1:0"\n'


async def other_sites(stand: Stand) -> Outcome:
    """Ask a worker and a gateway as a page of another site would make a browser ask."""
    file = stand.configure({"modes": _COLLECTION})
    file.write_text(file.read_text() + _GATEWAY)
    found: list[str] = []
    with (
        stand.serving("worker", "-c", str(file)) as running,
        stand.serving("gateway", "-c", str(file)) as gateway,
    ):
        for server, name, path, header, expected in (
            (running, "worker, cross-site", "/api/collections", "Sec-Fetch-Site: cross-site", 403),
            (running, "worker, same-site", "/api/collections", "Sec-Fetch-Site: same-site", 403),
            (running, "worker, metrics", "/metrics", "Sec-Fetch-Site: cross-site", 403),
            (running, "worker, by a link", "/", "Sec-Fetch-Site: cross-site", 200),
            (running, "worker, its page", "/api/collections", "Sec-Fetch-Site: same-origin", 200),
            (running, "worker, a tool", "/api/collections", "Accept: */*", 200),
            (gateway, "gateway, evil.example", "/healthz", "Host: evil.example", 421),
            (gateway, "gateway, localhost", "/healthz", "Accept: */*", 200),
            (running, "worker, no HTTP", "", "", 400),
            (gateway, "gateway, no HTTP", "", "", 400),
        ):
            status, versions = await _asked(server, path, header)
            if status != expected:
                found.append(f"{name}: {status}")
            if versions:
                found.append(f"{name}: {versions}")
    return Outcome(not found, "; ".join(found)[:200] or "10 requests answered as expected")


async def _asked(server: Worker, path: str, header: str) -> tuple[int, str]:
    """Return the status of an answer, and its header Server."""
    host, port = server.url.removeprefix("http://").split(":")
    named = "" if header.startswith("Host:") else "Host: localhost\r\n"
    request = f"GET {path} HTTP/1.1\r\n{named}{header}\r\nConnection: close\r\n\r\n"
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request.encode() if path else b"who are you?\r\n\r\n")
    async with asyncio.timeout(PATIENCE_SECONDS):
        lines = (await reader.read()).decode("latin-1").split("\r\n")
    writer.close()
    return int(lines[0].split()[1]), next((one for one in lines if one.startswith("Server:")), "")


ATTACKS = (
    Attack(
        "http-other-sites",
        "other sites' requests and names are refused, no versions disclosed",
        other_sites,
    ),
)
