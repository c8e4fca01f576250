"""A TCP proxy between a worker and a broker, whose connections can be cut, held or slowed."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_CHUNK_BYTES = 1 << 16
_SLOW_BYTES, _SLOW_SECONDS = 2_000, 0.05


class Proxy:
    """Forwards a port of its own, `port`, to another one on the loopback interface.

    While `cut`, connections are closed and new ones are closed at once; while `held`, they stay
    open and nothing passes, in either direction; while `slow`, 40 kB/s pass on each.
    """

    def __init__(self, target_port: int, port: int) -> None:
        self.port = port
        self._target_port = target_port
        self._passing = asyncio.Event()
        self._passing.set()
        self._is_cut = False
        self._slow = False
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def serve(self) -> AsyncIterator["Proxy"]:
        """Forward for the length of a `with` block."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        try:
            yield self
        finally:
            server.close()
            await self._drop()

    async def cut(self, seconds: float) -> None:
        """Close all connections, and let none be made for so long."""
        self._is_cut = True
        await self._drop()
        await asyncio.sleep(seconds)
        self._is_cut = False

    async def hold(self, seconds: float) -> None:
        """Let nothing pass for so long, on connections that stay open."""
        self._passing.clear()
        await asyncio.sleep(seconds)
        self._passing.set()

    async def slow(self, seconds: float) -> None:
        """Let little pass for so long."""
        self._slow = True
        await asyncio.sleep(seconds)
        self._slow = False

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._forward(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.ExitStack() as open_ones:
            open_ones.callback(writer.transport.abort)
            if self._is_cut:
                return
            try:
                there, back = await asyncio.open_connection("127.0.0.1", self._target_port)
            except OSError:
                return
            open_ones.callback(back.transport.abort)
            ways = [
                asyncio.create_task(self._pump(reader, back)),
                asyncio.create_task(self._pump(there, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_SLOW_BYTES if self._slow else _CHUNK_BYTES):
                await self._passing.wait()
                if self._slow:
                    await asyncio.sleep(_SLOW_SECONDS)
                writer.write(data)
                await writer.drain()

    async def _drop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
