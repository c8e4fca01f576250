"""The demonstration: a broker, a worker and devices together, what it prints, and how it ends."""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from aiokafka.errors import KafkaError
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ldpstream.agents.broker.embedded import EmbeddedBroker, embedded_broker, free_port
from ldpstream.agents.broker.patches.error_names import name_errors
from ldpstream.agents.broker.refusals import BrokerUnavailableError
from ldpstream.agents.broker.topics import TopicError
from ldpstream.agents.cli.demonstration.devices import (
    WINDOW_MS,
    Crowd,
    SentReports,
    TruthComparison,
    compare,
    demo_config,
    report_crowd,
)
from ldpstream.agents.cli.terminal import broker
from ldpstream.agents.cli.terminal.client import connect
from ldpstream.agents.cli.terminal.errors import Failed
from ldpstream.agents.cli.terminal.tables import percent, table_console
from ldpstream.agents.client import Client, EstimateRequest
from ldpstream.agents.config import Config
from ldpstream.agents.device import Sender
from ldpstream.agents.document.answers import CollectionStatus, WindowState
from ldpstream.agents.document.model import EstimateDocument
from ldpstream.agents.engine.process import run_and_leave, set_up_logging
from ldpstream.agents.web import HttpUnavailableError
from ldpstream.agents.worker import work
from ldpstream.mechanisms.base.texts import count
from ldpstream.mechanisms.base.times import parse_time

INTERRUPTED: Final = 130
_USUAL_PORT: Final = 6066
_BATCH: Final = 500
_PROGRESS_SECONDS: Final = 2.0
_STEP_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 60.0
_END_SECONDS: Final = 20.0
_COMPARED_WINDOWS: Final = 100
_SEED: Final = 1
"""Of the values; reports use the operating system's randomness."""
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_TABLE: Final = "causes"
"""The collection of which a table is printed."""


class DemoError(RuntimeError):
    """The demonstration cannot continue; the message says why."""


_FAILURES: Final = (
    DemoError,
    Failed,
    HttpUnavailableError,
    TopicError,
    BrokerUnavailableError,
)


@dataclass(frozen=True, kw_only=True)
class DemoSummary:
    """What devices sent to a collection, what was counted, and the newest final windows."""

    name: str
    sent: SentReports
    status: CollectionStatus
    documents: Sequence[EstimateDocument]

    @property
    def decided(self) -> int:
        """How many reports are counted, late or rejected."""
        return _decided(self.status)

    @property
    def good(self) -> bool:
        """Whether the demonstration shows what it should."""
        return self.decided == self.sent.total and bool(self.documents)

    @property
    def comparisons(self) -> list[TruthComparison]:
        """All values of all documents, with the truth."""
        return [
            comparison for document in self.documents for comparison in compare(document, self.sent)
        ]


def run_demo(*, seconds: float | None, port: int | None, rate: int) -> int:
    """Run the demonstration, and return its exit code.

    It sends `rate` reports per second for `seconds`, None until Ctrl-C. `port` None is the worker's
    usual one, or any free one if that is taken.

    0; 1 if something in the summary is wrong, or if a part fails, with one message on stderr; 130
    if it was interrupted. Ctrl-C and SIGTERM end it as if its time were over; before the first
    report, or a second time, they end it at once. It never leaves a process or a file behind.

    It keeps the handlers of these signals, and may end the process (`run_and_leave`).
    """
    set_up_logging()
    name_errors()
    signals: list[int] = []
    for number in _SIGNALS:
        signal.signal(number, lambda number, _: signals.append(number))
    try:
        return run_and_leave(_run(seconds, port, rate, signals))
    finally:
        # While the interpreter exits, it would restore handlers that end the process.
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)


async def _run(seconds: float | None, requested: int | None, rate: int, signals: list[int]) -> int:
    console = table_console()
    stop = asyncio.Event()
    try:
        console.print("starting the embedded broker and the worker")
        with embedded_broker() as embedded:
            port = _choose_port(requested)
            config = demo_config(bootstrap=embedded.bootstrap, port=port)
            sent = {
                name: SentReports(collection.spec.domain, WINDOW_MS)
                for name, collection in config.collections.items()
            }
            demo = asyncio.create_task(_demonstrate(config, seconds, rate, sent, stop, console))
            summaries = await _supervised(demo, embedded, sent, stop, signals)
    except asyncio.CancelledError:
        return INTERRUPTED
    except _FAILURES as error:
        print(error, file=sys.stderr)
        return 1
    except KafkaError as error:
        print(f"the embedded broker failed: {error}", file=sys.stderr)
        return 1
    print_summary(summaries, console)
    return 0 if all(summary.good for summary in summaries) else 1


async def _supervised(
    demo: "asyncio.Task[list[DemoSummary]]",
    embedded: EmbeddedBroker,
    sent: Mapping[str, SentReports],
    stop: asyncio.Event,
    signals: list[int],
) -> list[DemoSummary]:
    """Return the summaries; a signal stops the devices, or cancels everything.

    Raises:
        DemoError: where the broker has ended.
        CancelledError: at a second signal, or one before the first report.
    """
    handled = 0
    while not demo.done() and embedded.running:
        if len(signals) > handled:
            handled = len(signals)
            if handled > 1 or not any(reports.total for reports in sent.values()):
                demo.cancel()
            stop.set()
        await asyncio.wait([demo], timeout=_STEP_SECONDS)
    if not embedded.running:
        demo.cancel()
        # A producer with messages in flight waits for the broker for minutes.
        await asyncio.wait([demo], timeout=_END_SECONDS)
        raise DemoError("the embedded broker has ended")
    return demo.result()


def _choose_port(requested: int | None) -> int:
    """Return the given port, or else the worker's usual one if it is free, or else 0."""
    port = _USUAL_PORT if requested is None else requested
    try:
        free_port(port)
    except OSError as error:
        if requested is not None:
            problem = f"--port: cannot serve HTTP on 127.0.0.1:{port}: {error.strerror}"
            raise DemoError(f"{problem}; choose another, or 0 for any free one") from error
        return 0
    return port


async def _demonstrate(
    config: Config,
    seconds: float | None,
    rate: int,
    sent: Mapping[str, SentReports],
    stop: asyncio.Event,
    console: Console,
) -> list[DemoSummary]:
    """Run the worker and the devices until `stop` is set; return the summaries of all windows."""
    async with _running_worker(config) as url, connect(url) as worker:
        console.print(f"live page: {url}", soft_wrap=True)
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, stop.set)
        try:
            await asyncio.gather(
                *(_report(config, rate, name, sent[name], stop) for name in sent),
                _show_progress(worker, seconds, sent, stop, console),
            )
        finally:
            stop.set()
        console.print("the devices have stopped; counting their last reports")
        closing = (_close_windows(worker, config, name, sent[name]) for name in sent)
        return list(await asyncio.gather(*closing))


async def _report(
    config: Config, rate: int, name: str, sent: SentReports, stop: asyncio.Event
) -> None:
    """Report to a collection until `stop` is set: each gets as many reports as the others."""
    spec, kafka = config.collections[name].spec, config.kafka
    crowd = Crowd(spec.domain.shape, seed=_SEED)
    rate = max(1, rate // len(config.collections))
    async with Sender(spec, kafka.bootstrap, options=kafka.options) as sender:
        await report_crowd(sender, crowd, stop, rate=rate, batch=_BATCH, acknowledged=sent.add)


async def _show_progress(
    worker: Client,
    seconds: float | None,
    sent: Mapping[str, SentReports],
    stop: asyncio.Event,
    console: Console,
) -> None:
    """Print how many reports were sent and counted, until `stop` is set."""
    begun, until = time.monotonic(), "" if seconds is None else f" of {seconds:g} s"
    while not stop.is_set():
        with suppress(TimeoutError):
            async with asyncio.timeout(_PROGRESS_SECONDS):
                await stop.wait()
        counted = sum([(await worker.status(name)).counted for name in sent])
        total = sum(reports.total for reports in sent.values())
        texts = (
            f"{time.monotonic() - begun:.0f} s{until}",
            f"sent {total:,}",
            f"counted {counted:,}",
        )
        console.print(" | ".join(texts), markup=False, soft_wrap=True)


async def _close_windows(
    worker: Client, config: Config, name: str, sent: SentReports
) -> DemoSummary:
    """Close all windows once every report is counted, late or rejected; return the summary.

    After a minute it stops waiting, and the summary says what is missing.
    """
    starts, windows = set(sent.newest(_COMPARED_WINDOWS)), dict[int, WindowState]()
    with suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while _decided(await worker.status(name)) != sent.total:  # noqa: ASYNC110 (a worker)
                await asyncio.sleep(_STEP_SECONDS)
            until_ms = max(sent.truth, default=0) + WINDOW_MS
            await broker.close_panes(config.kafka, config.collections[name], until_ms)
            while not starts <= windows.keys():
                await asyncio.sleep(_STEP_SECONDS)
                windows = await _published(worker, name)
    status = await worker.status(name)
    documents = [await _estimate(worker, name, window) for window in windows.values()]
    return DemoSummary(name=name, sent=sent, status=status, documents=documents)


def _decided(status: CollectionStatus) -> int:
    return status.counted + status.late + status.rejected


async def _published(worker: Client, name: str) -> dict[int, WindowState]:
    """Return the newest windows whose finals are published, by their start in epoch ms."""
    windows = await worker.newest(name, _COMPARED_WINDOWS)
    return {parse_time(window.window.start): window for window in windows if window.published}


async def _estimate(worker: Client, name: str, window: WindowState) -> EstimateDocument:
    span = window.window
    request = EstimateRequest(start=span.start, end=span.end, top="all")
    return await worker.estimate(name, request)


@asynccontextmanager
async def _running_worker(config: Config) -> AsyncIterator[str]:
    """Run a worker during an `async with` block, which gets its URL."""
    stop = asyncio.Event()
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    working = asyncio.create_task(work(config, stop, announce=url.set_result))
    waiting: list[asyncio.Future[Any]] = [working, url]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            raise DemoError(f"the worker ended with exit code {working.result()}")
        yield url.result()
    finally:
        stop.set()
        if not url.done():
            working.cancel()
        with suppress(asyncio.CancelledError):
            await working


def print_summary(summaries: Sequence[DemoSummary], console: Console) -> None:
    """Print the sums over all collections; what is wrong is bold and red."""
    sent = sum(summary.sent.total for summary in summaries)
    decided = sum(summary.decided for summary in summaries)
    _print_line(console, "sent", count(sent, "report"))
    for name in ("counted", "late", "rejected"):
        total = sum(getattr(summary.status, name) for summary in summaries)
        _print_line(console, name, f"{total:,}")
    wrong = [summary for summary in summaries if summary.decided != summary.sent.total]
    for summary in wrong:
        text = f"{summary.decided:,}, but {summary.sent.total:,} were sent to {summary.name}"
        _print_failure(console, "NOT ACCOUNTED", f"counted + late + rejected = {text}")
    if not wrong:
        _print_line(console, "accounted", f"counted + late + rejected = sent = {decided:,}")
    for summary in summaries:
        for problem in summary.status.problems:
            _print_failure(console, "PROBLEM", problem)
    comparisons = list(chain.from_iterable(summary.comparisons for summary in summaries))
    documents = list(chain.from_iterable(summary.documents for summary in summaries))
    confidence = max((document.confidence for document in documents), default=0.0)
    _print_line(console, "bounds", coverage(comparisons, confidence))
    for summary in summaries:
        if summary.name == _TABLE and summary.documents:
            # The window with the most reports, since the last one ends early.
            fullest = max(reversed(summary.documents), key=lambda document: document.n)
            console.print(_shares(fullest, summary.sent))


def _shares(document: EstimateDocument, sent: SentReports) -> Table:
    """Return a table of the shares with their bounds, next to the truth."""
    window = document.window
    assert window is not None
    of = f"{document.collection} of {window.start} to {window.end}"
    caption = f"{of}, {count(document.n, 'report')}"
    table = Table(title=Text(caption), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("value", no_wrap=True)
    for column in ("true", "estimate", "low", "high"):
        table.add_column(column, justify="right", no_wrap=True)
    for comparison in compare(document, sent):
        entry = comparison.entry
        shares = comparison.truth, entry.share, entry.low, entry.high
        style = "red" if comparison.inside is False else ""
        table.add_row(Text(comparison.name), *map(percent, shares), style=style)
    return table


def coverage(comparisons: Sequence[TruthComparison], confidence: float) -> str:
    """Return a text that says how many true shares are inside their bounds."""
    bounded = [comparison.inside for comparison in comparisons if comparison.inside is not None]
    if not bounded:
        return "no final window has enough reports for estimates"
    covered = sum(bounded)
    return (
        f"{covered:,} of {len(bounded):,} true shares are inside their "
        f"{100 * confidence:g}% bounds: {100 * covered / len(bounded):.1f}%"
    )


def _print_line(console: Console, name: str, text: str) -> None:
    console.print(Text(f"{name:<10} {text}"))


def _print_failure(console: Console, name: str, text: str) -> None:
    console.print(Text(f"{name}: {text}", style="bold red"))
