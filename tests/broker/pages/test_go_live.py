"""docs/tutorials/go-live.md as it stands, with this broker's address and names of its own."""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest

from tests import missing, pages
from tests.broker.conftest import on_kafka
from tests.brokers import Broker
from tests.pages import Place
from tests.ports import free_ports

pytestmark = [pytest.mark.broker, on_kafka]

PAGE: Final = "docs/tutorials/go-live.md"
_KEEP: Final = "export -p | grep LDPSTREAM_READ_TOKEN > known || true"


def test_two_workers_a_ledger_and_a_drill(running: Broker, tmp_path: Path) -> None:
    missing.skip_without("curl")
    one, two = free_ports(2)
    addresses = {"127.0.0.1:9092": running.bootstrap, "6066": str(one), "6067": str(two)}
    # A kill -9 of a worker has to be one of the worker itself.
    place = Place.made(tmp_path, addresses, own_code=True)
    try:
        for block in pages.blocks(PAGE):
            if block.heading.startswith("4."):
                # The device and the drill report in the same hour.
                pages.wait_for_window(3_600, left_seconds=120)
            # Variables of one block are known in the next, as in a terminal.
            said = place.shell(f"[ ! -e known ] || . ./known\n{block.code}\n{_KEEP}")
            assert not block.output or pages.agrees(said, block), f"{block.code}{said}"
    finally:
        for file in tmp_path.glob("worker-?.pid"):
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGKILL)
