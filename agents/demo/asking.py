"""The demonstration's queries to its worker, over HTTP like anybody's."""

from typing import Literal

from ldpstream.agents.client import Client, EstimateRequest
from ldpstream.agents.demo.setting import COLLECTION, TOP
from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.document.answers import WindowState
from ldpstream.mechanisms.base.times import parse_time


async def ask_windows(worker: Client, *, last: int) -> dict[int, WindowState]:
    """Return the newest windows that hold counted reports, by their start in epoch ms."""
    windows = await worker.newest(COLLECTION, last)
    return {parse_time(one.window.start): one for one in windows if one.n}


async def ask_estimate(
    worker: Client, window: WindowState, *, top: int | Literal["all"] = TOP
) -> EstimateDocument:
    """Return the document of a window with its `top` places, or all."""
    span = window.window
    return await worker.estimate(
        COLLECTION, EstimateRequest(start=span.start, end=span.end, top=top)
    )


async def ask_newest(worker: Client, *, enough: int) -> EstimateDocument | None:
    """Return the document of the newest window with enough reports, or else of the newest."""
    windows = list((await ask_windows(worker, last=3)).values())
    known = [one for one in windows if one.n >= enough] or windows
    return await ask_estimate(worker, known[-1]) if known else None
