"""The demonstration: broker, worker, devices and page together, and how they end."""

import asyncio
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from rich.console import Console

from ldpstream.agents.client import Client
from ldpstream.agents.config import CollectionConfig, Config
from ldpstream.agents.demo.city import City, build_city
from ldpstream.agents.demo.devices import Devices, SentReports
from ldpstream.agents.demo.finish import finish
from ldpstream.agents.demo.setting import COLLECTION, WINDOW_MS, ask_newest, demo_config
from ldpstream.agents.demo.summary import Summary, print_summary
from ldpstream.agents.demo.view import Moment, compare, open_screen
from ldpstream.agents.http import HttpUnavailableError
from ldpstream.agents.kafka import clients
from ldpstream.agents.kafka.declare import TopicError
from ldpstream.agents.kafka.embedded import EmbeddedBroker, embedded_broker
from ldpstream.agents.kafka.refusals import BrokerUnavailableError
from ldpstream.agents.process.running import run_and_leave, set_up_logging
from ldpstream.agents.terminal.client import connect
from ldpstream.agents.terminal.errors import Failed
from ldpstream.agents.terminal.tables import table_console
from ldpstream.agents.worker import work

INTERRUPTED: Final = 130
_USUAL_PORT: Final = 6066
_LOOK_SECONDS: Final = 1.0
_STEP_SECONDS: Final = 0.1
_STOP_SECONDS: Final = 2.0
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


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
class DemoOptions:
    """How the demonstration runs: `rate` in reports per second; `seconds` None until Ctrl-C.

    `port` None is the worker's usual one, or any free one if that is taken.
    """

    seconds: float | None
    port: int | None
    rate: int
    seed: int


class _Interrupts:
    """SIGINT, SIGTERM and SIGHUP as a callback, for as long as the process lives.

    A signal before `connect` is remembered; later ones call back on the running event loop. After
    the loop has ended they do nothing, so that cleaning up is not interrupted. `ignore` keeps it
    that way while the interpreter exits, which would restore the fatal defaults.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._callback: Callable[[], None] | None = None
        self._early = False
        for number in _SIGNALS:
            signal.signal(number, self._handle)

    def ignore(self) -> None:
        """Ignore the signals from now on, while the process exits."""
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)

    def connect(self, callback: Callable[[], None]) -> None:
        """Call back on the running loop at each signal, and at once if there was one before."""
        self._loop, self._callback = asyncio.get_running_loop(), callback
        if self._early:
            callback()

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._loop is None or self._callback is None:
            self._early = True
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._callback)


def run_demo(options: DemoOptions) -> int:
    """Run the demonstration, and return its exit code.

    0; 1 if something in the summary is wrong, or if a part fails, with one message on stderr; 130
    if it was interrupted. Ctrl-C and SIGTERM end it as if its time were over; before the first
    report, or a second time, they end it at once. It never leaves a process or a file behind.

    It keeps the handlers of these signals, and may end the process (`run_and_leave`).
    """
    set_up_logging()
    interrupts = _Interrupts()
    try:
        return run_and_leave(_run(options, interrupts))
    finally:
        interrupts.ignore()


async def _run(options: DemoOptions, interrupts: _Interrupts) -> int:
    console = table_console()
    city = build_city(options.seed)
    try:
        with embedded_broker() as broker:
            port = _choose_port(options.port)
            config = demo_config(city, bootstrap=broker.bootstrap, port=port)
            demo = _Demo(options, config, city, broker, console)
            summary = await demo.run(interrupts)
    except asyncio.CancelledError:
        return INTERRUPTED
    except _FAILURES as error:
        print(error, file=sys.stderr)
        return 1
    except KafkaError as error:
        print(f"the embedded broker failed: {error}", file=sys.stderr)
        return 1
    print_summary(summary, console)
    return 0 if summary.good else 1


def _choose_port(asked: int | None) -> int:
    """Return the given port, or else the worker's usual one if it is free, or else 0.

    Raises:
        DemoError: where the given port cannot be used.
    """
    port = _USUAL_PORT if asked is None else asked
    with socket.socket() as probe:
        # As the server does, so that a port that was just closed counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if asked is not None:
                said = f"--port: cannot serve HTTP on 127.0.0.1:{port}: {error.strerror}"
                raise DemoError(f"{said}; choose another, or 0 for any free one") from error
            return 0
    return port


class _Demo:
    def __init__(
        self,
        options: DemoOptions,
        config: Config,
        city: City,
        broker: EmbeddedBroker,
        console: Console,
    ) -> None:
        self._console = console
        self._broker = broker
        self._options = options
        self._config = config
        self._city = city
        self._stop = asyncio.Event()
        self._sent = SentReports(places=len(city.places), window_ms=WINDOW_MS)

    @property
    def _collection(self) -> CollectionConfig:
        return self._config.collections[COLLECTION]

    async def run(self, interrupts: _Interrupts) -> Summary:
        """Run all parts, and return the summary."""
        task = asyncio.current_task()
        assert task is not None
        self._running = task
        interrupts.connect(self._interrupted)
        self._console.print("starting the embedded broker and the worker")
        async with (
            _running_worker(self._config) as url,
            connect(url) as worker,
            self._producer() as producer,
        ):
            self._console.print(f"live page: {url}", soft_wrap=True)
            devices = self._devices(producer)
            reporting = asyncio.create_task(devices.run(self._stop))
            try:
                await self._watch(reporting, devices, worker, url)
            finally:
                reporting.cancel()
            self._console.print("the devices have stopped; counting their last reports")
            control = self._collection.topics.control
            return await finish(producer, control, worker, self._sent, self._city.places)

    def _interrupted(self) -> None:
        if self._stop.is_set() or self._sent.total == 0:
            self._running.cancel()
        self._stop.set()

    @asynccontextmanager
    async def _producer(self) -> AsyncIterator[AIOKafkaProducer]:
        kafka = self._config.kafka
        producer = clients.producer(kafka.bootstrap, kafka.options)
        try:
            await producer.start()
            yield producer
        finally:
            # All that matters has been acknowledged. Without a broker this would wait for one, and
            # the producer's own cancelled tasks surface here.
            with suppress(TimeoutError, asyncio.CancelledError):
                await asyncio.wait_for(producer.stop(), _STOP_SECONDS)

    def _devices(self, producer: AIOKafkaProducer) -> Devices:
        return Devices(
            self._city,
            self._collection.spec,
            producer,
            self._sent,
            seed=self._options.seed,
            rate=self._options.rate,
        )

    async def _watch(
        self, reporting: "asyncio.Task[None]", devices: Devices, worker: Client, url: str
    ) -> None:
        """Show estimates next to the truth until the time is over and all is sent."""
        begun = time.monotonic()
        seconds = self._options.seconds
        looks = 0
        with open_screen(self._console, seconds) as show:
            while not reporting.done():
                if not self._broker.running:
                    raise DemoError("the embedded broker has ended")
                elapsed = time.monotonic() - begun
                if seconds is not None and elapsed >= seconds:
                    self._stop.set()
                if elapsed >= looks * _LOOK_SECONDS and not self._stop.is_set():
                    looks += 1
                    document = await ask_newest(worker, enough=self._options.rate)
                    moment = Moment(
                        url=url,
                        elapsed_seconds=elapsed,
                        hour=devices.hour,
                        status=await worker.status(COLLECTION),
                        sent=self._sent.total,
                        document=document,
                    )
                    show(moment, compare(document, self._sent, self._city.places))
                await asyncio.wait([reporting], timeout=_STEP_SECONDS)
        await reporting


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
