"""Single requests that cost a worker more memory than all that it holds."""

import time
import urllib.error
import urllib.request

from tests.attack.stand import Attack, Outcome, Stand, resident_bytes
from tests.processes import Worker, eventually

_COLLECTION = """mechanism = "block-hadamard"
epsilon = 1.0
domain = {{ size = {values} }}
partitions = 1
precision = "1s"
minimum = 1
publish = {{ every = "1h" }}
window = {{ size = "1h", grace = "1m" }}"""
_DEAR = "top=100000&method=anytime&simultaneous=true&project=simplex"
_REPORTS = 10


def _ask(worker: Worker, query: str) -> tuple[int, float]:
    """Return the status of an estimate, and the seconds that it took."""
    began = time.monotonic()
    address = f"{worker.url}/api/collections/large/estimate?{query}"
    try:
        with urllib.request.urlopen(address, timeout=300) as answer:
            answer.read()
            status = answer.status
    except urllib.error.HTTPError as error:
        with error:
            status = error.code
    return status, time.monotonic() - began


async def _cost(stand: Stand, query: str, limit_bytes: int) -> Outcome:
    values = 1_000_000 if stand.short else 10_000_000
    if stand.short:
        limit_bytes //= 10
    file = stand.configure({"large": _COLLECTION.format(values=values)})
    sent = "".join(f"{value}\n" for value in range(_REPORTS)).encode()
    with stand.serving("worker", "-c", str(file), seconds=300) as worker:
        ran = stand.run("send", "large", "-c", str(file), stdin=sent, seconds=300)
        assert ran.returncode == 0, ran.stderr.decode()

        def counted() -> bool:
            return bool(worker.metrics("ldpstream_reports_total") >= _REPORTS)

        await eventually(counted, what="the reports are counted")
        idle = resident_bytes(worker.process.pid)
        status, seconds = _ask(worker, query)
        more = resident_bytes(worker.process.pid) - idle
    figure = f"{status} in {seconds:.1f} s, {more >> 20} MiB above {idle >> 20} MiB idle"
    return Outcome(status in (200, 400) and more <= limit_bytes, figure)


async def dear_answer(stand: Stand) -> Outcome:
    """Ask for the longest list with the costliest bounds and a projection of everything."""
    return await _cost(stand, _DEAR, 1536 << 20)


async def plain_answer(stand: Stand) -> Outcome:
    """Ask for the default document."""
    return await _cost(stand, "", 1 << 30)


ATTACKS = (
    Attack(
        "memory-dear-answer",
        "the costliest request takes at most 1.5 GiB above the idle worker, of 10 million values",
        dear_answer,
    ),
    Attack(
        "memory-plain-answer",
        "the default document takes at most 1 GiB above the idle worker, of 10 million values",
        plain_answer,
    ),
)
