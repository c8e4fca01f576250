"""What the demonstration asks its worker, over HTTP as anybody would."""

from typing import Final

from ldpstream.agents.cli.client import Parameters, WorkerClient
from ldpstream.agents.demo.setting import COLLECTION, TOP
from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.http.answers import CollectionStatus, WindowList, WindowState
from ldpstream.mechanisms.times import parse_time

_PATH: Final = f"/api/collections/{COLLECTION}"


async def ask_status(worker: WorkerClient) -> CollectionStatus:
    """Return how far the collection is."""
    return CollectionStatus.model_validate_json(await worker.get(f"{_PATH}/status"))


async def ask_windows(worker: WorkerClient, *, last: int) -> dict[int, WindowState]:
    """Return the newest windows that hold counted reports, by their start in epoch ms."""
    raw = await worker.get(f"{_PATH}/windows", [("last", str(last))])
    windows = WindowList.model_validate_json(raw).windows
    return {parse_time(one.window.start): one for one in windows if one.n}


async def ask_estimate(
    worker: WorkerClient, window: WindowState, *, top: str = str(TOP)
) -> EstimateDocument:
    """Return the document of a window, with the `top` places, or "all"."""
    span: Parameters = [("start", window.window.start), ("end", window.window.end), ("top", top)]
    return EstimateDocument.model_validate_json(await worker.get(f"{_PATH}/estimate", span))


async def ask_newest(worker: WorkerClient, *, enough: int) -> EstimateDocument | None:
    """Return the document of the newest window with enough reports, or of the newest with any."""
    windows = list((await ask_windows(worker, last=3)).values())
    known = [one for one in windows if one.n >= enough] or windows
    return await ask_estimate(worker, known[-1]) if known else None
