"""The end of a demonstration: wait until all is counted, close all windows, fetch the finals."""

import asyncio
import time
from collections.abc import Sequence
from typing import Final

from aiokafka import AIOKafkaProducer

from ldpstream.agents.client import Client
from ldpstream.agents.demo.devices import SentReports
from ldpstream.agents.demo.setting import COLLECTION, ask_estimate, ask_windows
from ldpstream.agents.demo.summary import WINDOWS_CHECKED, Summary
from ldpstream.agents.document import EstimateDocument
from ldpstream.agents.document.answers import CollectionStatus, WindowState
from ldpstream.agents.partition.orders import Control, encode_control

PATIENCE_SECONDS: Final = 30.0
_COMPARED_WINDOWS: Final = 100
_STEP_SECONDS: Final = 0.2


async def finish(
    producer: AIOKafkaProducer,
    control_topic: str,
    worker: Client,
    sent: SentReports,
    places: Sequence[str],
) -> Summary:
    """Close all windows once all reports are counted, late or rejected; return the summary.

    After half a minute it stops waiting, and the summary says what is missing.
    """
    status = await _until_decided(worker, sent)
    if _decided(status) == sent.total and sent.truth:
        until_ms = max(sent.truth) + sent.window_ms
        order = encode_control(Control(until_ms, dict(sent.ends)))
        await producer.send_and_wait(control_topic, order, partition=0)
    windows = await _until_final(worker, sent)
    documents: dict[int, EstimateDocument] = {}
    for start_ms, window in list(windows.items())[-_COMPARED_WINDOWS:]:
        if window.final:
            documents[start_ms] = await ask_estimate(worker, window, top="all")
    top = None
    if documents:
        # The window with the most reports, since the last one ends early; the newest of several.
        fullest = max(documents, key=lambda start_ms: (documents[start_ms].n, start_ms))
        top = await ask_estimate(worker, windows[fullest])
    return Summary(
        sent=sent,
        status=await worker.status(COLLECTION),
        windows=windows,
        documents=documents,
        top=top,
        places=places,
    )


def _decided(status: CollectionStatus) -> int:
    return status.counted + status.late + status.rejected


async def _until_decided(worker: Client, sent: SentReports) -> CollectionStatus:
    deadline = time.monotonic() + PATIENCE_SECONDS
    status = await worker.status(COLLECTION)
    while _decided(status) != sent.total and time.monotonic() < deadline:
        await asyncio.sleep(_STEP_SECONDS)
        status = await worker.status(COLLECTION)
    return status


async def _until_final(worker: Client, sent: SentReports) -> dict[int, WindowState]:
    """Wait until all windows are final; return those found."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    wanted = set(sent.newest(WINDOWS_CHECKED))
    while True:
        windows = await ask_windows(worker, last=WINDOWS_CHECKED)
        final = {start_ms for start_ms, one in windows.items() if one.published}
        if wanted <= final or time.monotonic() > deadline:
            return windows
        await asyncio.sleep(_STEP_SECONDS)
